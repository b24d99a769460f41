"""A difference of two versions as lines: the file, then what was taken away and what was put in."""

from __future__ import annotations

from typing import Any

from reef.cli.look import OUT, Look
from reef.text import one_line


def lines_of(difference: dict[str, Any], look: Look = OUT) -> list[str]:
    """Lines of `{"files": [{"path", "status", "hunks"}]}`; every one says by its first sign what it is."""
    files = difference.get("files") or []
    if not files:
        return ["  no file differs"]
    lines = []
    for file in files:
        status = str(file.get("status"))
        name = look.paint(one_line(str(file.get("path")), 400), "strong")
        lines.append(f"  {name}" if status == "changed" else f"  {name}  {look.paint(one_line(status, 20), 'dim')}")
        lines += [f"  {_line(line, look)}" for line in _body(str(file.get("hunks") or ""))]
    return lines


def _body(hunks: str) -> list[str]:
    # The two header lines of a unified diff only repeat the path; `\ No newline` says nothing about a rule.
    lines = hunks.splitlines()
    while lines and lines[0].startswith(("--- ", "+++ ")):
        lines.pop(0)
    return [line for line in lines if not line.startswith("\\")]


def _line(text: str, look: Look) -> str:
    sign, rest = text[:1], text[1:]
    # Indentation is content here, so only what is not blank goes through the one-line rule.
    indent = rest[: len(rest) - len(rest.lstrip(" "))]
    shown = f"{sign} {indent}{one_line(rest, 2000)}" if sign in "+- " and sign else one_line(text, 2000)
    style = {"+": "good", "-": "failed", "@": "dim"}.get(sign)
    return look.paint(shown, style) if style else shown
