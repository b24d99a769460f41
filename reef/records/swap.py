"""Changing places: what a home holds goes aside and what was unpacked takes its place, in moves that can be resumed.

The moves are written down first, in `restore.json`. Whoever comes next under the daemon's lock, a restore or the
daemon's start, finishes what an interruption left; each move that was made before is nothing the second time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from reef.errors import Failed
from reef.paths import Paths, ensure_private, write_atomic

JOURNAL = "restore.json"
KEPT = "before-restore-"
"""How the folder begins that keeps what was there before."""
# The write-ahead log goes before its database: beside another one it would be taken for that one's.
_ITEMS = ("reef.db-wal", "reef.db-shm", "reef.db", "versions.git")
_SETTINGS = "config.yaml"


def begin(paths: Paths, staged: Path, kept: str) -> Path:
    """Write down that what is in `staged` takes the place of what is there. Returns the folder that will keep that."""
    _write_journal(paths, {"staged": staged.name, "kept": kept, "moved": False})
    return paths.data / kept


def finish(paths: Paths) -> bool:
    """Finish the moves of a restore that was interrupted; whether there was one. The caller holds the daemon's lock."""
    journal = paths.data / JOURNAL
    if not journal.is_file():
        return False
    facts = json.loads(journal.read_text(encoding="utf-8"))
    staged, kept = paths.data / Path(facts["staged"]).name, paths.data / Path(facts["kept"]).name
    if not facts["moved"]:
        for name in _ITEMS:
            _move(paths.data / name, kept / name)
        _write_journal(paths, facts | {"moved": True})
    for name in _ITEMS:
        _move(staged / name, paths.data / name)
    _swap_settings(paths, staged / _SETTINGS, kept / _SETTINGS)
    if staged.exists() and not any(staged.iterdir()):
        staged.rmdir()
    journal.unlink()
    _sync(paths.data)
    return True


def _move(source: Path, target: Path) -> None:
    """Move what is at `source`, if anything is; done before, it does nothing."""
    if not source.exists() and not source.is_symlink():
        return
    if target.exists():
        raise Failed(f"{target} is in the way of an unfinished restore", f"mv {target} {target}.old && reef up")
    ensure_private(target.parent)
    source.rename(target)
    _sync(target.parent)


def _swap_settings(paths: Paths, staged: Path, kept: Path) -> None:
    """Settings are copied, as their folder may be on another disk; a link to them stays a link."""
    if not staged.is_file():
        return
    place = paths.config_file.resolve()
    if place.is_file() and not kept.is_file():
        write_atomic(kept, place.read_bytes())
    write_atomic(place, staged.read_bytes())
    staged.unlink()


def _write_journal(paths: Paths, facts: dict[str, Any]) -> None:
    write_atomic(paths.data / JOURNAL, json.dumps(facts).encode())
    _sync(paths.data)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
