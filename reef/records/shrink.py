"""Putting the file in order after a deletion: free pages given back, the log emptied, the free room of pages cleared.

A page that was freed keeps its place in the file until it is given back, and the log holds pages as they were. All is
done in steps, so that the calls of the meantime are recorded.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from reef.errors import Failed, Unavailable
from reef.records import scrub as scrubbing
from reef.records.sweep import Turn
from reef.records.writer import Writer

HELD_S = 10.0
"""How long another program may keep the log from being emptied before it is named."""

_PAGES = 32
_SLICE_S = 0.01
_READ_MARKS = range(123, 128)
"""Bytes of the `-shm` file that SQLite locks while a transaction reads: where a reader is, whoever it is."""


class LogHeld(Unavailable):
    """Another program reads the store in a transaction that began before a deletion: old pages stay in the log."""

    code = "log_held"


def size(path: Path) -> int:
    """Bytes that the store takes, its log included."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def give_back(writer: Writer, turn: Turn) -> int:
    """Give every free page back to the disk. Returns how many there were."""
    total = left = writer.submit(_free_pages, essential=False).result()
    given = 0
    # A page that is freed meanwhile is left to the next time.
    while left and given < total:
        some, left = writer.submit(_give_some, essential=False).result()
        given += some
        turn()
    return given


def empty_log(path: Path, turn: Turn, wait_s: float | None = None) -> None:
    """Write the log's pages into the file and cut it to nothing.

    Raises LogHeld that names who keeps it from that for longer than `wait_s` seconds (default: `HELD_S`).
    """
    until = time.monotonic() + (HELD_S if wait_s is None else wait_s)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.02)
    try:
        # Most pages are copied while others write; the rest does not take long.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        while True:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
            if time.monotonic() >= until:
                raise _held(path)
            time.sleep(0.05)
            turn()
    finally:
        connection.close()


def scrub(path: Path, turn: Turn) -> None:
    """Clear the free room of pages that are in use, in a process of its own: see `reef.records.scrub`.

    Raises LogHeld when somebody else was always in the way, Failed when it did not work.
    """
    environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    command = [sys.executable, "-P", "-m", "reef.records.scrub", str(path)]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            while process.poll() is None:
                turn()
                time.sleep(0.01)
        except BaseException:
            process.kill()
            raise
        said = process.stderr.read().decode("utf-8", "replace") if process.stderr else ""
    if process.returncode == scrubbing.HELD:
        raise _held(path)
    if process.returncode != 0:
        last = said.strip().splitlines()[-1:] or [f"status {process.returncode}"]
        raise Failed(f"the free room of the store's pages was not cleared: {last[0]}", "reef doctor")


def readers(path: Path) -> list[str]:
    """The programs that hold a read transaction on the store, as `pid 123 (sqlite3)`; none where nobody can say."""
    if not sys.platform.startswith("linux"):
        return []
    try:
        inode = path.with_name(path.name + "-shm").stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found: dict[int, None] = {}
    for line in lines:
        # 4: POSIX  ADVISORY  READ 4711 00:2f:123456 123 123
        fields = line.split()
        if len(fields) != 8 or fields[1] != "POSIX" or fields[5].rpartition(":")[2] != str(inode):
            continue
        last = int(fields[7]) if fields[7].isdigit() else sys.maxsize
        if int(fields[6]) < _READ_MARKS.stop and last >= _READ_MARKS.start and fields[4].isdigit():
            found[int(fields[4])] = None
    return [f"pid {pid} ({_command(pid)})" for pid in found]


def _held(path: Path) -> LogHeld:
    named = readers(path)
    who = ", ".join(named) or "a program that this system does not name"
    hint = f"ps -p {named[0].split()[1]}" if named else f"fuser -v {path}-shm"
    return LogHeld(f"{who} has read {path.name} for a while, so its log still holds what was removed", hint)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended by now"


def _free_pages(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA freelist_count").fetchone()[0])


def _give_some(conn: sqlite3.Connection) -> tuple[int, int]:
    """Give as many pages back as a slice has time for; returns how many, and how many are left."""
    left = total = _free_pages(conn)
    until = time.monotonic() + _SLICE_S
    while left and time.monotonic() < until:
        for _ in range(min(_PAGES, left)):
            # However many it is asked for, one step is one page, and sqlite3 takes one step.
            conn.execute("PRAGMA incremental_vacuum(1)")
        left = _free_pages(conn)
    return total - left, left
