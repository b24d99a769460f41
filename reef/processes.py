"""Whether a process of this machine runs, and since when: from `/proc`, or by asking the system where there is none."""

from __future__ import annotations

import os
from pathlib import Path


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of `pid`; None when it does not run (a zombie does not) or without /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int) -> bool:
    """Whether process `pid` runs."""
    if start_time(pid) is not None:
        return True
    if pid <= 0 or Path("/proc/self/stat").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
