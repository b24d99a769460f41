"""Windows of records, newest first: what fits is found by sequence, and only the rows that are shown are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from reef.records import shapes
from reef.records.filters import Filter

Row = dict[str, Any]


def listed(
    conn: sqlite3.Connection, wanted: Filter, before: int | None = None, after: int | None = None, limit: int = 100
) -> list[Row]:
    """Records, newest first.

    `before` and `after` are sequences: the `limit` rows next to `before` on its older side, or next to `after` on its
    newer side. Raises InvalidInput for a filter that is put wrongly.
    """
    where, values = wanted.conditions(conn)
    order = "ASC" if before is None and after is not None else "DESC"
    for sign, sequence in (("<", before), (">", after)):
        if sequence is not None:
            where.append(f"records.sequence {sign} ?")
            values.append(sequence)
    found = conn.execute(
        f"SELECT records.sequence FROM records{clause(where)} ORDER BY records.sequence {order} LIMIT ?",
        (*values, limit),
    ).fetchall()
    return rows(conn, [row[0] for row in found])


def counted(conn: sqlite3.Connection, wanted: Filter) -> int:
    """How many records `listed` would go through."""
    where, values = wanted.conditions(conn)
    return int(conn.execute(f"SELECT count(*) FROM records{clause(where)}", values).fetchone()[0])


def rows(conn: sqlite3.Connection, sequences: Iterable[int]) -> list[Row]:
    """The rows with these sequences, newest first."""
    found = [
        conn.execute(f"{shapes.SELECT_RECORDS} WHERE records.sequence = ?", (sequence,)).fetchone()
        for sequence in sorted(sequences, reverse=True)
    ]
    return [shapes.record(row) for row in found if row is not None]


def clause(conditions: list[str]) -> str:
    """The conditions as a WHERE clause."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
