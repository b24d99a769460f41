"""How a step's processes end: all of them, whoever started them, and never later than two seconds after the daemon."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

from reef.processes import family, is_alive, parents, start_time

GRACE_S = 2.0
_SWEEP_S = 1.0
"""How long a keeper may take to end what its step left."""
MARKER = "REEF_STEP"
"""Variable that every process of a step inherits."""


def end_family(pid: int, grace_s: float = GRACE_S) -> None:
    """End `pid`, a step's keeper, and every process below it: SIGTERM, then SIGKILL after `grace_s` seconds.

    Returns when all are gone or have been killed. The keeper is killed only when it does not end by itself, because
    while it lives no process gets away from it; it is not reaped here.
    """
    born = start_time(pid)
    members = family(pid)
    _signal(members, signal.SIGTERM)
    _wait_for(members[1:], grace_s)
    _signal(family(pid)[1:], signal.SIGKILL)
    _wait_for([pid], _SWEEP_S)
    if is_alive(pid) and start_time(pid) == born:
        _signal(family(pid), signal.SIGKILL)


def end_below() -> None:
    """Kill every process below this one, also what they start meanwhile, and reap them; returns when none is left."""
    while True:
        _signal(family(os.getpid())[1:], signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def end_marked(marker: str) -> None:
    """Kill every process that carries `REEF_STEP=<marker>` in its environment.

    It finds what left its parent, its group and its session. Where there is no `/proc`, `end_family` must do.
    """
    wanted = f"{MARKER}={marker}".encode()
    if not sys.platform.startswith("linux"):
        return
    for pid, _ in parents():
        try:
            found = wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if found and pid != os.getpid():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def end_with_parent(handle: int) -> None:
    """Watch `handle`, the reading end of a pipe whose other end the daemon holds; when it closes, kill all below.

    Called in a step's keeper, which ends when its child has. The watching thread costs nothing until then.
    """
    os.set_inheritable(handle, False)

    def watch() -> None:
        while True:
            try:
                if not os.read(handle, 1):
                    break
            except InterruptedError:
                continue
            except OSError:
                break
        _signal(family(os.getpid())[:0:-1], signal.SIGKILL)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _signal(members: list[int], number: signal.Signals) -> None:
    for member in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member, number)


def _wait_for(members: list[int], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(is_alive(member) for member in members):
        time.sleep(0.02)
