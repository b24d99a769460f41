"""Several rows in one statement.

Every statement costs its own way into SQLite and back, on which the interpreter changes hands; a group of the writer's
is written with few of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

ROWS = 8
"""Rows in one statement at most: the connection keeps one of each size, and SQLite before 3.32 takes 999 values."""


def insert(
    conn: sqlite3.Connection, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> list[int]:
    """Insert `rows` into `table` and return their sequences. No row may be one that an ON CONFLICT would leave out.

    A column that no row has a value for is left to its default: binding a None costs more than most values do.
    """
    sequences: list[int] = []
    start = 0
    while start < len(rows):
        size = min(ROWS, len(rows) - start)
        chunk = rows[start : start + size]
        start += size
        empty = (None,) * size
        used = tuple([place for place, values in enumerate(zip(*chunk, strict=True)) if values != empty])
        statement, pick = _statement(table, columns, used, size)
        last = conn.execute(statement, [value for row in chunk for value in pick(row)]).lastrowid or 0
        # The table is ordered by `sequence` and has one writer: the rows of one statement follow each other.
        sequences += range(last - size + 1, last + 1)
    return sequences


@lru_cache(maxsize=256)
def _statement(
    table: str, columns: tuple[str, ...], used: tuple[int, ...], rows: int
) -> tuple[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
    """The statement for so many rows with values at the places `used`, and what takes those from a row."""
    names = ", ".join(columns[place] for place in used)
    values = f"({', '.join('?' * len(used))})"
    return f"INSERT INTO {table} ({names}) VALUES {', '.join([values] * rows)}", itemgetter(*used)
