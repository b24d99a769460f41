"""The line after a session on a terminal that says how to go on with it through reef.

An agent ends with a line of its own that names the agent's own program, which would go on without reef. Where the agent
has no setting for that name, the wrapper adds the command that is meant.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from reef.harness.adapter_file import Adapter, Resume

_CLOCK_S = 0.05
"""A file system's clock may be this far behind."""
_HEADER_BYTES = 1 << 20
"""Codex keeps its whole instructions in the first line."""


def resume_line(adapter: Adapter, home: Path, arguments: Sequence[str], started: float) -> str | None:
    """`with reef: reef-pi --session ID` for the session that was written last since `started` (seconds since 1970).

    None where the agent has no such session: it ran without a person, kept none, or works in another directory.
    """
    if adapter.resume is None or adapter.transcript is None or set(arguments) & set(adapter.resume.unless):
        return None
    place = home / adapter.transcript.path
    found = _of_database(place, adapter.resume.query) if adapter.resume.query else _of_files(place, adapter.resume)
    here = str(Path.cwd())
    for session, cwd, changed in found:
        if changed >= started - _CLOCK_S and cwd == here:
            words = [word.replace("{session}", session) for word in adapter.resume.arguments]
            return f"with reef: {shlex.join([f'reef-{adapter.name}', *words])}"
    return None


def _of_files(folder: Path, resume: Resume) -> Iterator[tuple[str, str | None, float]]:
    """Id, directory and last change of every session, the newest first."""
    files = [(file.stat().st_mtime, file) for file in folder.glob("**/*.jsonl")]
    for changed, file in sorted(files, reverse=True):
        session, cwd = _header(file, resume)
        if session is not None:
            yield session, cwd, changed


def _of_database(place: Path, query: str) -> list[tuple[str, str | None, float]]:
    try:
        with closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as connection:
            return [(str(row[0]), row[1], float(row[2])) for row in connection.execute(query)]
    except (sqlite3.Error, TypeError, ValueError):
        # The agent's own file: one that cannot be read costs this line and nothing else.
        return []


def _header(file: Path, resume: Resume) -> tuple[str | None, str | None]:
    """Id and directory of a session, as the first line that has them says."""
    read = 0
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            while read < _HEADER_BYTES and (line := lines.readline(_HEADER_BYTES)):
                read += len(line)
                found = _facts(json.loads(line), resume)
                if found is not None:
                    return found
    except (OSError, ValueError):
        return None, None
    return None, None


def _facts(line: object, resume: Resume) -> tuple[str, str] | None:
    if not isinstance(line, dict) or (resume.header and line.get("type") != resume.header):
        return None
    facts = line.get(resume.within) if resume.within else line
    session, cwd = (facts.get(resume.id), facts.get("cwd")) if isinstance(facts, dict) else (None, None)
    return (session, cwd) if isinstance(session, str) and isinstance(cwd, str) else None


def on_terminal() -> bool:
    """Whether a person sees both ends of the agent."""
    return os.isatty(0) and os.isatty(1)
