"""What runs on this machine, since when and below what: from `/proc`, or by asking the system where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
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


def family(pid: int) -> list[int]:
    """`pid` and every process below it, parents first."""
    children: dict[int, list[int]] = {}
    for child, parent in parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def parents() -> list[tuple[int, int]]:
    """Every process of the machine with its parent."""
    if not sys.platform.startswith("linux"):
        rows = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        return [(int(fields[0]), int(fields[1])) for row in rows.splitlines() if len(fields := row.split()) == 2]
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        found.append((int(entry.name), int(fields[1])))
    return found
