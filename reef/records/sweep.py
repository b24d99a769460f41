"""Deleting chains and parts that nothing uses any more: mark what the records use, delete the rest.

No part carries a count of its users: a call would pay for it with every message. Instead every chain is looked at once,
newest first. A node is made after what it stands on, so when a node's turn comes, all that could use it have had
theirs. One bit a node and a part is all that is held in memory.

Marking reads on a connection of its own, without a transaction, while calls are recorded. Each deletion therefore first
marks what has been recorded since, in the writer's transaction, where nothing else can come in between. Nodes go newest
first too: one that is stored always has all its predecessors, also when a stop comes halfway.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from reef.records import totals
from reef.records.writer import Writer

Turn = Callable[[], None]
"""Called between two slices of work: gives way to others, and raises to stop."""

ROOTS = ("request_part", "request_chain", "response_part", "response_chain", "raw_part", "raw_chain")
"""Where a record points into parts and chains, in turn."""

_WINDOW = 2000
_SLICE_ROWS = 200
_SLICE_BYTES = 512 * 1024
_LATE = 10_000
"""How far back a row may still wait for its request, which follows by itself when it is large."""
_ROW = f"SELECT sequence, state = 'open' OR request_hash IS NULL, {', '.join(ROOTS)} FROM records"
_RECORDS = f"{_ROW} WHERE sequence > ? ORDER BY sequence LIMIT ?"
_ONE_RECORD = f"{_ROW} WHERE sequence = ?"
_NODES = "SELECT sequence, previous, part, child FROM chains WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
_NODE = "SELECT previous, part, child FROM chains WHERE sequence = ?"


class Bits:
    """A set of sequences, one bit each."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> None:
        at = number >> 3
        if at >= len(self._bytes):
            self._bytes.extend(bytes(at + 1024 - len(self._bytes)))
        self._bytes[at] |= 1 << (number & 7)

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        at = number >> 3
        return at < len(self._bytes) and bool(self._bytes[at] >> (number & 7) & 1)


@dataclass
class Marks:
    """What is used, up to a place in the store."""

    nodes: Bits = field(default_factory=Bits)
    parts: Bits = field(default_factory=Bits)
    records: int = 0
    """The newest record that was looked at."""
    chains: int = 0
    """The newest node there was at the beginning; what came later is looked at before each deletion."""
    newest_part: int = 0
    unsettled: list[int] = field(default_factory=list)
    """Records that may point elsewhere by now."""


@dataclass
class Freed:
    """What a sweep deleted."""

    nodes: int = 0
    parts: int = 0
    bytes: int = 0


def mark(conn: sqlite3.Connection, turn: Turn, without: Container[int] = ()) -> Marks:
    """Mark everything that records use; `without` are records that do not count."""
    marks = Marks()
    marks.chains = _newest(conn, "chains")
    marks.newest_part = _newest(conn, "parts")
    while rows := conn.execute(_RECORDS, (marks.records, _WINDOW)).fetchall():
        for sequence, unsettled, *roots in rows:
            if sequence in without:
                continue
            if unsettled:
                marks.unsettled.append(sequence)
            _mark_roots(marks, roots)
        marks.records = rows[-1][0]
        turn()
    marks.unsettled = [sequence for sequence in marks.unsettled if sequence > marks.records - _LATE]
    for sequence, previous, part, child in nodes_newest_first(conn, turn):
        if sequence in marks.nodes:
            _mark_node(marks, previous, part, child)
    return marks


def nodes_newest_first(
    conn: sqlite3.Connection, turn: Turn, below: int = 1 << 62
) -> Iterator[tuple[int, int | None, int | None, int | None]]:
    """Every node of every chain as `(sequence, previous, part, child)`, each before those that it stands on."""
    while rows := conn.execute(_NODES, (below, _WINDOW)).fetchall():
        yield from rows
        below = rows[-1][0]
        turn()


def sweep(conn: sqlite3.Connection, writer: Writer, turn: Turn) -> Freed:
    """Delete every node and shared part that no record uses. `conn` reads; may be stopped and begun again.

    Parts without a hash belong to one record and go with it, not here.
    """
    marks = mark(conn, turn)
    freed = Freed()
    for chosen in _slices(_unused_nodes(conn, marks, turn)):
        freed.nodes += _write(writer, marks, partial(_delete_nodes, marks, chosen))[0]
        turn()
    for chosen in _slices(_unused_parts(conn, marks, turn)):
        number, size = _write(writer, marks, partial(_delete_parts, marks, chosen))
        freed.parts += number
        freed.bytes += size
        turn()
    return freed


def catch_up(conn: sqlite3.Connection, marks: Marks) -> list[int]:
    """Mark what was recorded since, and return the records that are still unsettled.

    Only ever marks more, so that the writer may run it twice.
    """
    unsettled = []
    for sequence in marks.unsettled:
        for _, still, *roots in conn.execute(_ONE_RECORD, (sequence,)).fetchall():
            _use(conn, marks, roots)
            if still:
                unsettled.append(sequence)
    after = marks.records
    while rows := conn.execute(_RECORDS, (after, _WINDOW)).fetchall():
        for sequence, still, *roots in rows:
            _use(conn, marks, roots)
            if still:
                unsettled.append(sequence)
        after = rows[-1][0]
    for (node,) in conn.execute("SELECT sequence FROM chains WHERE sequence > ?", (marks.chains,)).fetchall():
        _use(conn, marks, (None, node))
    return unsettled


def _write(writer: Writer, marks: Marks, delete: Callable[[sqlite3.Connection], tuple[int, int]]) -> tuple[int, int]:
    """Run a deletion behind a `catch_up`. The newest numbers are taken after it: SQLite gives them again."""

    def operation(conn: sqlite3.Connection) -> tuple[tuple[int, int], list[int], int, int]:
        unsettled = catch_up(conn, marks)
        return delete(conn), unsettled, _newest(conn, "records"), _newest(conn, "chains")

    result, marks.unsettled, marks.records, marks.chains = writer.submit(operation, essential=False).result()
    return result


def _mark_roots(marks: Marks, roots: Iterable[int | None]) -> None:
    for place, number in enumerate(roots):
        if number is not None:
            (marks.nodes if place % 2 else marks.parts).add(number)


def _mark_node(marks: Marks, previous: int | None, part: int | None, child: int | None) -> None:
    for node in (previous, child):
        if node is not None:
            marks.nodes.add(node)
    if part is not None:
        marks.parts.add(part)


def reach(conn: sqlite3.Connection, roots: Iterable[int | None], nodes: Bits | set[int]) -> Iterator[int]:
    """The parts that `roots` stand on, some of them more than once; not what is below a node of `nodes`.

    `roots` are as `ROOTS` names them. Every node that is come by is added to `nodes`.
    """
    waiting = []
    for place, number in enumerate(roots):
        if number is not None and place % 2:
            waiting.append(number)
        elif number is not None:
            yield number
    while waiting:
        node = waiting.pop()
        if node in nodes:
            continue
        row = conn.execute(_NODE, (node,)).fetchone()
        nodes.add(node)
        if row is not None:
            previous, part, child = row
            if part is not None:
                yield part
            waiting += [found for found in (previous, child) if found is not None]


def _use(conn: sqlite3.Connection, marks: Marks, roots: Iterable[int | None]) -> None:
    """Mark `roots` and all that they stand on, down to what is marked already."""
    for part in reach(conn, roots, marks.nodes):
        marks.parts.add(part)


def _unused_nodes(conn: sqlite3.Connection, marks: Marks, turn: Turn) -> Iterator[tuple[int, int]]:
    for sequence, *_ in nodes_newest_first(conn, turn, marks.chains + 1):
        if sequence not in marks.nodes:
            yield sequence, 0


def _unused_parts(conn: sqlite3.Connection, marks: Marks, turn: Turn) -> Iterator[tuple[int, int]]:
    """Unused parts with their stored sizes, found through the index of hashes: the bodies are not read."""
    newest, after = marks.newest_part, b""
    while True:
        rows = conn.execute(
            "SELECT hash, sequence FROM parts WHERE hash IS NOT NULL AND hash > ? ORDER BY hash LIMIT ?",
            (after, _WINDOW),
        ).fetchall()
        if not rows:
            return
        for _, sequence in rows:
            if sequence <= newest and sequence not in marks.parts:
                size = conn.execute("SELECT length(body) FROM parts WHERE sequence = ?", (sequence,)).fetchone()
                yield sequence, size[0] if size else 0
        after = rows[-1][0]
        turn()


def _slices(found: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Groups of sequences that are deleted in one go: few enough that a call's row does not wait."""
    chosen: list[int] = []
    size = 0
    for sequence, length in found:
        chosen.append(sequence)
        size += length
        if len(chosen) >= _SLICE_ROWS or size >= _SLICE_BYTES:
            yield chosen
            chosen, size = [], 0
    if chosen:
        yield chosen


def _delete_nodes(marks: Marks, chosen: list[int], conn: sqlite3.Connection) -> tuple[int, int]:
    going = [(node,) for node in chosen if node not in marks.nodes]
    conn.executemany("DELETE FROM chains WHERE sequence = ?", going)
    return len(going), 0


def _delete_parts(marks: Marks, chosen: list[int], conn: sqlite3.Connection) -> tuple[int, int]:
    going = [part for part in chosen if part not in marks.parts]
    return len(going), totals.delete_parts(conn, going)


def _newest(conn: sqlite3.Connection, table: str) -> int:
    return int(conn.execute(f"SELECT coalesce(max(sequence), 0) FROM {table}").fetchone()[0])
