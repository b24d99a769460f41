"""What a file is, by its content, and the session files below a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from reef.transcripts import claude, codex, database, hermes, native, opencode, pi
from reef.transcripts.call import Call, Reading, parsed

RECORDS = "records"
READERS: dict[str, Callable[[Path, Reading], Iterator[Call]]] = {
    pi.AGENT: pi.calls,
    claude.AGENT: claude.calls,
    codex.AGENT: codex.calls,
    opencode.AGENT: opencode.calls,
    native.AGENT: native.calls,
    hermes.AGENT: hermes.calls,
}
_ENDINGS = (".jsonl", ".json", ".db", ".sqlite")
_LINES = 50
_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Found:
    """A file that can be imported: `kind` is `records` or an agent's name."""

    kind: str
    path: Path


def find(place: Path) -> Iterator[Found]:
    """The file at `place`, or the files below it by name; what is nothing of the kind is passed over."""
    if not place.is_dir():
        kind = kind_of(place)
        if kind is not None:
            yield Found(kind, place)
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            if name.endswith(_ENDINGS) and path.is_file() and (kind := kind_of(path)) is not None:
                yield Found(kind, path)


def kind_of(path: Path) -> str | None:
    """What a file holds: `records`, or the sessions of an agent; None for anything else."""
    if database.is_database(path):
        there = database.tables(path)
        return next((reader.AGENT for reader in (opencode, hermes) if there >= reader.TABLES), None)
    with path.open("rb") as source:
        beginning = list(islice(iter(lambda: source.readline(_LINE_BYTES), b""), _LINES))
    for line in beginning:
        found = parsed(line)
        if found is None:
            continue
        if "agent_record_id" in found:
            return RECORDS
        if native.is_native(found):
            return native.AGENT
        if found.get("type") == "session" and "id" in found and "cwd" in found:
            return pi.AGENT
        if found.get("type") == "session_meta" and isinstance(found.get("payload"), dict):
            return codex.AGENT
        if isinstance(found.get("sessionId"), str) and "uuid" in found:
            return claude.AGENT
    joined = b"".join(beginning)
    exported = joined[:1] == b"{" and b'"info"' in joined and b'"messages"' in path.read_bytes()
    return opencode.AGENT if exported else None
