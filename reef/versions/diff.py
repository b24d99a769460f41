"""What differs between two releases, file by file: as unified text, and word by word."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reef import worddiff
from reef.versions.repository import Repository

MAX_TEXT = 512 * 1024
"""Bytes of a file above which only its change of size is told."""


@dataclass(frozen=True)
class FileDiff:
    """One file that differs."""

    path: str
    status: Literal["added", "removed", "changed"]
    hunks: str
    """Unified diff text with the headers `--- a/…` and `+++ b/…`; one sentence for what is not text."""

    def to_json(self) -> dict[str, Any]:
        """`{"path", "status", "hunks", "lines"}`; `lines` is what `worddiff.lines` makes of the hunks."""
        found = {"path": self.path, "status": self.status, "hunks": self.hunks}
        return {**found, "lines": worddiff.lines(self.hunks)}


def compare(repository: Repository, before: str, after: str) -> list[FileDiff]:
    """The files that differ between releases `before` and `after`, by path. Equal files are never read."""
    old, new = repository.listing(before), repository.listing(after)
    found = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        left = repository.blob(old[path]) if path in old else None
        right = repository.blob(new[path]) if path in new else None
        status: Literal["added", "removed", "changed"] = (
            "added" if left is None else "removed" if right is None else "changed"
        )
        found.append(FileDiff(path, status, _hunks(path, left, right)))
    return found


def _hunks(path: str, left: bytes | None, right: bytes | None) -> str:
    before, after = _lines(left), _lines(right)
    if before is None or after is None:
        return f"not shown as text: {len(left or b'')} bytes before, {len(right or b'')} bytes after\n"
    names = ("/dev/null" if left is None else f"a/{path}", "/dev/null" if right is None else f"b/{path}")
    return "".join(_ended(difflib.unified_diff(before, after, *names)))


def _lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return []
    if len(content) > MAX_TEXT or b"\0" in content:
        return None
    try:
        return _split(content.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _split(text: str) -> list[str]:
    """Lines with their ends, cut at newlines only: other separators stay inside a line, as git has it."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
