"""Differences of files, with the changed words marked where a line was changed."""

from __future__ import annotations

from typing import Any

from reef import worddiff
from reef.tui import cells
from reef.tui.lines import Block, Line, Span, paragraph

Json = dict[str, Any]
_STATUS = {"added": "new", "removed": "removed", "changed": "changed"}
GAP_MARK = "  …"
NO_NEWLINE = "  (no newline at the end)"
CODE = ("harness/extensions/", "harness/config/", "harness/tools/", "harness/hooks/")
"""Places in a version whose files are code, or settings that can run it."""


def blocks(files: list[Json]) -> list[Block]:
    """Each changed file as a block that can be folded."""
    if not files:
        return [Block("same", None, [Line.of(("no file is different", "dim"))])]
    return [_file(file) for file in files]


def is_code(path: str) -> bool:
    """Whether a file of a version is code-bearing by its place."""
    return path.startswith(CODE)


def _file(file: Json) -> Block:
    path = str(file.get("path") or "")
    status = str(file.get("status") or "changed")
    added, removed = counts(str(file.get("hunks") or ""))
    spans: list[Span] = [(cells.line(path, 200), "strong"), (f"  {_STATUS.get(status, cells.line(status, 12))}", "dim")]
    if added:
        spans.append((f" +{added}", "added"))
    if removed:
        spans.append((f" -{removed}", "removed"))
    if is_code(path):
        spans.append(("  code", "accent"))
    hunks = str(file.get("hunks") or "")
    lines = hunk_lines(hunks)
    if status == "added":
        lines = [line for line in lines if line.text != NO_NEWLINE]
    return Block(f"file-{path}", Line(tuple(spans), hang=2), [*lines, Line()], folded=False, copy=hunks)


def counts(hunks: str) -> tuple[int, int]:
    """Added and removed lines of a unified difference."""
    body = [line for line in hunks.split("\n") if not line.startswith(("+++", "---"))]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def hunk_lines(hunks: str) -> list[Line]:
    """A unified difference as lines; a run of removed lines before as many added ones is compared word by word."""
    lines: list[Line] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        lines.extend(_pairs(removed, added))
        removed.clear()
        added.clear()

    for line in hunks.split("\n"):
        if line.startswith(("+++ ", "--- ", "diff ", "index ", "new file", "deleted file")):
            continue
        if line.startswith("-"):
            if added:
                flush()
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            flush()
            lines += _context(line)
    flush()
    while lines and not lines[-1].spans:
        lines.pop()
    # Where the first hunk begins is of no use to a reader; the marks between hunks are.
    return lines[1:] if lines and lines[0].text == GAP_MARK else lines


def _context(line: str) -> list[Line]:
    if line.startswith("@@"):
        section = line.rpartition("@@")[2].strip()
        return [Line.of((f"{GAP_MARK} {cells.line(section, 80)}".rstrip(), "faint"))]
    if line.startswith("\\"):
        return [Line.of((NO_NEWLINE, "faint"))]
    return [Line.of(("  " + cells.shown(line[1:]), "dim"), hang=2)] if line else []


def _pairs(removed: list[str], added: list[str]) -> list[Line]:
    """Removed lines, then added lines; lines that are alike, in the same order, are compared word by word."""
    before = [cells.shown(text) for text in removed]
    after = [cells.shown(text) for text in added]
    first = [_side("- ", [(text, "removed")]) for text in before]
    second = [_side("+ ", [(text, "added")]) for text in after]
    for place, (other, parts) in worddiff.pairs(before, after).items():
        old, new = _spans(parts)
        first[place], second[other] = _side("- ", old), _side("+ ", new)
    return first + second


def _side(mark: str, spans: list[Span]) -> Line:
    return Line(((mark, "removed" if mark == "- " else "added"), *spans), hang=2)


def _spans(parts: list[worddiff.Part]) -> tuple[list[Span], list[Span]]:
    first: list[Span] = [(text, "removed" if sign == "=" else "removed-word") for sign, text in parts if sign != "+"]
    second: list[Span] = [(text, "added" if sign == "=" else "added-word") for sign, text in parts if sign != "-"]
    return first, second


def file_blocks(files: dict[str, str]) -> list[Block]:
    """Whole files of a version, for one that has nothing to be compared with."""
    return [
        Block(
            f"file-{path}",
            Line.of((cells.line(path, 200), "strong"), ("  code" if is_code(path) else "", "accent")),
            [*paragraph(cells.shown(text), "", 2), Line()],
            folded=True,
            copy=text,
        )
        for path, text in sorted(files.items())
    ]
