"""The line after a session on a terminal that says how to go on with it through reef.

An agent ends with a line of its own that names the agent's own program, which would go on without reef. Where the agent
has no setting for that name, the wrapper adds the command that is meant.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
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
    files = [(file.stat().st_mtime, file) for file in (home / adapter.transcript.path).glob("**/*.jsonl")]
    here = str(Path.cwd())
    for _, file in sorted((found for found in files if found[0] >= started - _CLOCK_S), reverse=True):
        session, cwd = _header(file, adapter.resume)
        if session is not None and cwd == here:
            words = [word.replace("{session}", session) for word in adapter.resume.arguments]
            return f"with reef: {shlex.join([f'reef-{adapter.name}', *words])}"
    return None


def _header(file: Path, resume: Resume) -> tuple[str | None, str | None]:
    """Id and directory of a session, as its first line has them."""
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            found = json.loads(lines.readline(_HEADER_BYTES))
    except (OSError, ValueError):
        return None, None
    if not isinstance(found, dict) or found.get("type") != resume.header:
        return None, None
    facts = found.get(resume.within) if resume.within else found
    if not isinstance(facts, dict) or not isinstance(facts.get("id"), str):
        return None, None
    return facts["id"], facts.get("cwd")


def on_terminal() -> bool:
    """Whether a person sees both ends of the agent."""
    return os.isatty(0) and os.isatty(1)
