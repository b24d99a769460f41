"""The process above a step's own: it stays until nothing of the step is left, whatever the step's code did to hide it.

A program that leaves its parent, its group and its session, and that runs with an empty environment, bears no mark of
the step. On Linux it still becomes the child of the nearest process above it that takes in orphans: the keeper, which
the daemon started and in which no code of a recipe runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from typing import NoReturn

from reef.learning import endings

_SUBREAPER = 36


def go_below(alive: int, frames: int) -> None:
    """Return in a child of this process, in a group of its own; this process becomes its keeper and never returns.

    The keeper ends the child, with all that is below it, when the pipe at `alive` closes, and ends as the child did.
    `frames` stays open in the child alone.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    # What ends the step must not end its keeper first: no signal but SIGKILL does.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(alive)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    os.close(frames)
    endings.end_with_parent(alive)
    _, status = os.waitpid(child, 0)
    if not sys.platform.startswith("linux"):
        # Orphans do not come here, but those that stayed in the step's group are still known by it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    endings.end_below()
    _end_like(os.waitstatus_to_exitcode(status))


def _end_like(status: int) -> NoReturn:
    """End with the exit status of the child, or by the signal that ended it."""
    if status < 0:
        # The child has written its core file; a second one would be the keeper's.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)
