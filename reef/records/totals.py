"""What is counted over the whole life of a store: bytes of bodies, what was pruned, what was forgotten.

The bytes of bodies are counted behind the calls, some parts at a time, and never from the beginning again: parts are
only added at the end, and whoever deletes one says so here, in the same transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

BODIES = "bodies_bytes"
"""Stored bytes of the parts up to `COUNTED_TO`."""
COUNTED_TO = "bodies_counted_to"
PRUNED_RECORDS = "pruned_records"
PRUNED_BYTES = "pruned_bytes"
FORGOTTEN_RECORDS = "forgotten_records"
SWEEP_DUE = "sweep_due"
"""1 while bodies were taken whose parts are still to be swept."""

_AT_ONCE = 1000


def read(conn: sqlite3.Connection) -> dict[str, int]:
    """Every total that is not 0."""
    return {str(name): int(value) for name, value in conn.execute("SELECT name, value FROM totals").fetchall()}


def add(conn: sqlite3.Connection, name: str, amount: int) -> None:
    """Add to a total."""
    if amount:
        conn.execute(
            "INSERT INTO totals (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + ?",
            (name, amount, amount),
        )


def put(name: str, value: int, conn: sqlite3.Connection) -> None:
    """Set a total."""
    conn.execute(
        "INSERT INTO totals (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = ?",
        (name, value, value),
    )


def count_bodies(conn: sqlite3.Connection) -> bool:
    """Count some more parts; False when all are counted."""
    found = read(conn)
    until = found.get(COUNTED_TO, 0)
    last, number, size = conn.execute(
        "SELECT max(sequence), count(*), sum(size) FROM"
        " (SELECT sequence, length(body) AS size FROM parts WHERE sequence > ? ORDER BY sequence LIMIT ?)",
        (until, _AT_ONCE),
    ).fetchone()
    if last is None:
        return False
    add(conn, BODIES, size)
    add(conn, COUNTED_TO, last - until)
    return bool(number == _AT_ONCE)


def delete_parts(conn: sqlite3.Connection, parts: Iterable[int]) -> int:
    """Delete parts and take them out of the count. Returns the bytes that they held."""
    until = read(conn).get(COUNTED_TO, 0)
    counted = freed = 0
    for part in parts:
        row = conn.execute("SELECT length(body) FROM parts WHERE sequence = ?", (part,)).fetchone()
        if row is None:
            continue
        conn.execute("DELETE FROM parts WHERE sequence = ?", (part,))
        freed += row[0]
        counted += row[0] if part <= until else 0
    add(conn, BODIES, -counted)
    # The numbers at the end are given again.
    newest = int(conn.execute("SELECT coalesce(max(sequence), 0) FROM parts").fetchone()[0])
    add(conn, COUNTED_TO, min(newest - until, 0))
    return freed
