"""`python -m reef.records.scrub FILE`: clear what SQLite leaves of removed rows inside pages that are in use.

`secure_delete` overwrites a row that is deleted. It does not overwrite the copies that were left in the free room of a
page when SQLite moved rows to the page beside it: those are there until something else takes the room. VACUUM would
write the whole store anew and keep every call waiting; this writes zeros into the free room of pages and nothing else.

It is a process of its own because it opens the file beside SQLite, and closing such a handle would let go of the locks
that SQLite holds for the whole process. A page is only written to while no other process can write: in a transaction
of the only writer, with the write-ahead log empty, so that the page is the newest and nobody is copying a newer one
over it. A reader may read the page meanwhile: what changes means nothing to it. The transaction then changes
something, so that every other connection drops the pages that it has in memory.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TRIES_S = 30.0
"""How long it tries to be alone with an empty log."""
HELD = 3
"""Exit status when it never was."""

_AT_ONCE = 96
_PAUSE_S = 0.03
_WINDOW = 256
_TREE = frozenset({2, 5, 10, 13})
_IN_TREE = frozenset({1, 5})
"""Kinds of page in the pointer map that are part of a tree."""


class NeverAlone(Exception):
    """Somebody else wrote to the store, or read in it, all the time."""


def free_room(page: bytes, number: int) -> list[tuple[int, int]]:
    """Where in a tree's page nothing is stored, as `(start, end)`; empty for a page that does not add up."""
    head = 100 if number == 1 else 0
    kind, first, cells, content = struct.unpack_from(">BHHH", page, head)
    if kind not in _TREE:
        return []
    content = content or 65536
    start = head + (12 if kind in (2, 5) else 8) + 2 * cells
    if not start <= content <= len(page):
        return []
    found = [(start, content)]
    while first:
        if first < content or first + 4 > len(page):
            return []
        following, size = struct.unpack_from(">HH", page, first)
        if size < 4 or first + size > len(page) or (following and following < first + size):
            return []
        found.append((first + 4, first + size))
        first = following
    return found


def stale(page: bytes, number: int) -> list[tuple[int, int]]:
    """The free room of a page that is not zeros."""
    return [(start, end) for start, end in free_room(page, number) if page.count(0, start, end) != end - start]


def find(handle: int) -> Iterator[int]:
    """The pages with something in their free room. Pages of a store that is written meanwhile may be missed."""
    size, pages = _shape(handle)
    for first in range(1, pages + 1, _WINDOW):
        data = os.pread(handle, size * _WINDOW, (first - 1) * size)
        tree = _tree_pages(handle, size, first, min(first + _WINDOW, pages + 1))
        for number in tree:
            page = data[(number - first) * size : (number - first + 1) * size]
            if len(page) == size and stale(page, number):
                yield number


def clear(path: Path, numbers: list[int], handle: int) -> None:
    """Clear the free room of some pages. Raises NeverAlone."""
    size, _ = _shape(handle)
    connection = _alone(path)
    try:
        for number in numbers:
            page = os.pread(handle, size, (number - 1) * size)
            if len(page) == size and number in _tree_pages(handle, size, number, number + 1):
                for start, end in stale(page, number):
                    os.pwrite(handle, bytes(end - start), (number - 1) * size + start)
        os.fsync(handle)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version={version}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _alone(path: Path) -> sqlite3.Connection:
    """A connection in a transaction that keeps every other writer out, with nothing in the log."""
    log = path.with_name(path.name + "-wal")
    until = time.monotonic() + TRIES_S
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.05)
    try:
        while time.monotonic() < until:
            try:
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                time.sleep(0.01)
                continue
            if not busy and log.exists() and log.stat().st_size == 0:
                return connection
            connection.execute("ROLLBACK")
            time.sleep(0.01)
    except BaseException:
        connection.close()
        raise
    connection.close()
    raise NeverAlone


def _shape(handle: int) -> tuple[int, int]:
    """Size of a page, and how many there are."""
    header = os.pread(handle, 100, 0)
    size = struct.unpack_from(">H", header, 16)[0]
    size = 65536 if size == 1 else size
    return size, os.fstat(handle).st_size // size


def _tree_pages(handle: int, size: int, first: int, end: int) -> list[int]:
    """Which of the pages from `first` on belong to a tree, by the pointer map of a store that can be vacuumed."""
    entries = size // 5
    found = [1] if first == 1 else []
    for number in range(max(first, 3), end):
        # A map stands before each run of pages that it describes; the first is page 2.
        run, place = divmod(number - 2, entries + 1)
        if place:
            kinds = _map(handle, size, 2 + run * (entries + 1))
            if len(kinds) == size and kinds[5 * (place - 1)] in _IN_TREE:
                found.append(number)
    return found


_maps: dict[int, bytes] = {}


def _map(handle: int, size: int, number: int) -> bytes:
    if number not in _maps:
        _maps.clear()
        _maps[number] = os.pread(handle, size, (number - 1) * size)
    return _maps[number]


def main(path: Path) -> int:
    """Clear every page of the store at `path`; prints how many there were."""
    # Closed by the end of the process: earlier, SQLite would lose its locks with it.
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    numbers = list(find(handle))
    try:
        for start in range(0, len(numbers), _AT_ONCE):
            _maps.clear()
            began = time.monotonic()
            clear(path, numbers[start : start + _AT_ONCE], handle)
            # A writer that found the store locked looks again after some milliseconds, and must find it free then.
            time.sleep(max(_PAUSE_S, time.monotonic() - began))
    except NeverAlone:
        return HELD
    sys.stdout.write(f"{len(numbers)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
