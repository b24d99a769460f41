"""Where a line came from: the version that brought it, found by comparing each version with the one before.

Like `git blame`, but going back and promoting publish old content again, and the line is then followed into the version
whose content that was.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from reef.versions.repository import Repository

_AGAIN = ("rollback", "promote")


def brought(repository: Repository, release_id: str, path: str, line: int) -> str:
    """The release that brought line `line` (from 0) of the file `path`, as `release_id` has it."""
    for at, before in _back(repository, release_id):
        old = repository.listing(before).get(path) if before is not None else None
        if before is None or old is None:
            return at
        new = repository.listing(at)[path]
        if old != new:
            there = mapped(_lines(repository, old), _lines(repository, new), line)
            if there is None:
                return at
            line = there
    return release_id


def changed(repository: Repository, release_id: str, paths: frozenset[str]) -> list[str]:
    """The releases up to `release_id` that brought or changed one of the files `paths`, newest first."""
    found = []
    for at, before in _back(repository, release_id):
        new = repository.listing(at)
        old = repository.listing(before) if before is not None else {}
        if any(new.get(path) != old.get(path) for path in paths):
            found.append(at)
        if not any(path in old for path in paths):
            break
    return found


def mapped(old: list[str], new: list[str], line: int) -> int | None:
    """Where line `line` of `new` stands in `old`; None when it is not there."""
    for tag, before, _, after, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if after <= line < end:
            return before + line - after if tag == "equal" else None
    return None


def _back(repository: Repository, release_id: str) -> Iterator[tuple[str, str | None]]:
    """Every release that made content, with the one that its content was made from, newest first."""
    at: str | None = release_id
    while at is not None:
        facts = repository.facts(at)
        while facts.get("operation") in _AGAIN and facts.get("source"):
            at = str(facts["source"])
            facts = repository.facts(at)
        before = repository.parent(at)
        yield at, before
        at = before


def _lines(repository: Repository, blob: str) -> list[str]:
    return repository.blob(blob).decode("utf-8", "replace").splitlines()
