"""What an agent leaves running when it ends: ended with it, and nothing else.

A program belongs to a run when the token of the run's session is in the environment that it was started with: whatever
the agent started, in the background or not, has it, and what a person started elsewhere has not. Where the system shows
no other program's environment (there is no `/proc`), nothing is ended.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from reef.discovery import SESSION_VARIABLE

PATIENCE_S = 2.0
"""How long a program has after the first signal."""
_ROUNDS = 3
"""A program may start another while it is being ended."""


def end_remaining(token: str, patience_s: float = PATIENCE_S) -> list[str]:
    """End what still runs of the session with this token, first with SIGTERM. Returns the programs' names."""
    ended: list[str] = []
    if not sys.platform.startswith("linux"):
        return ended
    for _ in range(_ROUNDS):
        running = _running(token)
        if not running:
            break
        ended += running.values()
        try:
            _signal(running, signal.SIGTERM)
            # A program that stands still sees no signal but this one.
            _signal(running, signal.SIGCONT)
            _wait(list(running), patience_s)
            _signal(running, signal.SIGKILL)
        finally:
            for file in running:
                os.close(file)
    return ended


def _running(token: str) -> dict[int, str]:
    """An open descriptor of each process that has the token in its environment, with the process's name."""
    wanted = f"{SESSION_VARIABLE}={token}".encode()
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid() or not _has(entry, wanted):
            continue
        with suppress(OSError):
            file = os.pidfd_open(int(entry.name))
            # Looked at once more: the number may meanwhile be another's.
            if _has(entry, wanted):
                found[file] = (entry / "comm").read_text(errors="replace").strip()
            else:
                os.close(file)
    return found


def _has(entry: Path, wanted: bytes) -> bool:
    try:
        return wanted in (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _signal(running: dict[int, str], number: signal.Signals) -> None:
    for file in running:
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(file, number)


def _wait(files: list[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    left = set(files)
    while left and (rest := deadline - time.monotonic()) > 0:
        # The descriptor of a process that has ended can be read.
        left -= set(select.select(left, [], [], rest)[0])
