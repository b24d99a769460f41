"""A difference of two versions as lines: the file, then what was taken away, put in, or changed in a line.

A line of which only some words changed is one line with the sign `~`: `[-old-]` was there, `{+new+}` is there now.
"""

from __future__ import annotations

from typing import Any

from reef import worddiff
from reef.cli.look import OUT, Look
from reef.text import one_line

_STYLES = {"+": "good", "-": "failed", "@": "dim"}
_MARKS = {"-": ("[-", "-]", "failed"), "+": ("{+", "+}", "good")}


def lines_of(difference: dict[str, Any], look: Look = OUT) -> list[str]:
    """Lines of `{"files": [{"path", "status", "hunks"}]}`; every one says by its first sign what it is."""
    files = difference.get("files") or []
    if not files:
        return ["  no file differs"]
    lines = []
    for file in files:
        status = str(file.get("status"))
        name = look.paint(one_line(str(file.get("path")), 400), "strong")
        entry = file.get("entry") or {}
        what = one_line(f"{entry['kind']} {entry['id']}", 100) if entry else ""
        told = look.joined(what, "" if status == "changed" else one_line(status, 20))
        lines.append(f"  {name}  {look.paint(told, 'dim')}" if told else f"  {name}")
        # `\ No newline` says nothing about a rule.
        found = [line for line in worddiff.lines(str(file.get("hunks") or "")) if line["sign"] != "\\"]
        lines += [f"  {_line(line, look)}" for line in found]
    return lines


def _line(line: dict[str, Any], look: Look) -> str:
    sign = line["sign"]
    if sign == "~":
        return f"~ {''.join(_part(part[0], part[1], look) for part in line['words'])}"
    if sign in "@!":
        return look.paint(one_line(line["text"], 2000), "dim" if sign == "@" else "needs")
    shown = f"{sign} {_kept(line['text'])}"
    return look.paint(shown, _STYLES[sign]) if sign in _STYLES else shown


def _part(sign: str, text: str, look: Look) -> str:
    if sign == "=":
        return _kept(text)
    left, right, style = _MARKS[sign]
    return look.paint(f"{left}{_kept(text)}{right}", style)


def _kept(text: str) -> str:
    """Foreign text with its blanks at both ends: indentation is content here."""
    inner = text.strip(" ")
    if not inner:
        return text
    start = text.index(inner)
    return f"{text[:start]}{one_line(inner, 2000)}{text[start + len(inner) :]}"
