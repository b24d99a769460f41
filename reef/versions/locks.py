"""Lock files in the repository: which are orphans of a killed git, and which somebody holds."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from reef.errors import Unavailable

_log = logging.getLogger(__name__)
_FIXED = ("index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock")
_OLD_S = 60.0
"""Age from which a lock counts as an orphan where the system cannot say who has a file open."""


def clear(repository: Path, branches: tuple[str, ...], wait_s: float, say: Callable[[str], None] | None = None) -> None:
    """Remove orphaned locks, wait for held ones.

    `branches` are the full refs that the caller is about to write. `say` is told each removal in one sentence (default:
    the log). Raises Unavailable that names the holder when a lock is still held after `wait_s` seconds.
    """
    tell = say or _log.warning
    names = [*_FIXED, *(f"{branch}.lock" for branch in branches)]
    end = time.monotonic() + wait_s
    for path in (repository / name for name in names):
        while path.exists():
            holder = _holder(path, repository)
            if holder is None:
                path.unlink(missing_ok=True)
                tell(f"removed the orphaned git lock {path.name}, which no process holds")
                break
            if time.monotonic() >= end:
                raise Unavailable(
                    f"{path} is held by {holder}, so nothing can be published now", f"rm {path}  # once it has ended"
                )
            time.sleep(0.05)


def _holder(path: Path, repository: Path) -> str | None:
    """The process that holds the lock `path`, in words, or None for an orphan."""
    if not sys.platform.startswith("linux"):
        try:
            age = time.time() - path.stat().st_mtime
        except FileNotFoundError:
            return None
        return None if age > _OLD_S else "a process that this system cannot name"
    for pid in _pids():
        if _has_open(pid, path) or _is_git_on(pid, repository):
            return f"process {pid}"
    return None


def _pids() -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield int(entry.name)


def _has_open(pid: int, path: Path) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_target(entry.path) == str(path) for entry in entries)
    except OSError:
        return False


def _is_git_on(pid: int, repository: Path) -> bool:
    """Whether the process is a git that works in `repository`: git closes some locks before it renames them."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    if not words or not Path(os.fsdecode(words[0])).name.startswith("git"):
        return False
    inside = _target(f"/proc/{pid}/cwd") == str(repository)
    return inside or any(os.fsencode(repository) in word for word in words[1:])


def _target(link: str) -> str | None:
    try:
        return str(Path(link).readlink())
    except OSError:
        return None
