"""Which records a person means: by receipt, by session, or by a text that stands in them.

All of it reads; the connection must be one of its own, as `Chosen` keeps the sequences in a temporary table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reef.credentials import clean
from reef.errors import InvalidInput, NotFound
from reef.ids import is_id, to_blob
from reef.records.packing import unpack
from reef.records.sweep import ROOTS, Bits, Turn

_WINDOW = 2000
_LEAST = 3


class Chosen:
    """The chosen records, as the temporary table `chosen` of the connection."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        conn.execute("PRAGMA temp_store=MEMORY")
        conn.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (sequence INTEGER PRIMARY KEY)")
        conn.execute("DELETE FROM chosen")

    def add(self, sequences: Iterable[int]) -> int:
        """Add records; returns how many there are now."""
        self.conn.executemany("INSERT OR IGNORE INTO chosen VALUES (?)", [(number,) for number in sequences])
        return int(self.conn.execute("SELECT count(*) FROM chosen").fetchone()[0])

    def leave_running(self) -> int:
        """Take out the records whose call is still running; returns how many."""
        return self.conn.execute(
            "DELETE FROM chosen WHERE sequence IN (SELECT records.sequence FROM records"
            " JOIN chosen ON chosen.sequence = records.sequence WHERE records.state = 'open')"
        ).rowcount


def by_receipts(conn: sqlite3.Connection, receipts: Sequence[str]) -> list[int]:
    """The records with these receipts. Raises NotFound that names the first unknown one."""
    found = []
    for receipt in receipts:
        row = conn.execute("SELECT sequence FROM records WHERE id = ?", (to_blob(receipt),)).fetchone()
        if row is None:
            raise NotFound(f"there is no record {receipt}", "reef records list")
        found.append(int(row[0]))
    return found


def by_session(conn: sqlite3.Connection, session: str, scenario: str | None = None) -> list[int]:
    """Every record of a session, given by its key or id. Raises NotFound."""
    keys = [clean(session)]
    if is_id(session):
        keys += [
            row[0] for row in conn.execute("SELECT key FROM sessions WHERE id = ?", (to_blob(session),)).fetchall()
        ]
    of, values = _of(scenario)
    found = conn.execute(
        f"SELECT sequence FROM records WHERE session IN ({', '.join('?' * len(keys))}){of} ORDER BY sequence",
        (*keys, *values),
    ).fetchall()
    if not found:
        raise NotFound(f"there is no record of a session {session[:64]!r}", "reef sessions list")
    return [int(row[0]) for row in found]


def by_text(conn: sqlite3.Connection, text: str, scenario: str | None, turn: Turn) -> list[int]:
    """Every record that holds `text` in its request or reply, whatever its letters' case.

    The bodies themselves are searched, and not the index: later calls of a session repeat what an earlier one said, and
    each of them holds it.
    """
    needles = _needles(text)
    parts, nodes = Bits(), Bits()
    for sequence, codec, size, body in _each(conn, "SELECT sequence, codec, size, body FROM parts", 64, turn):
        plain = unpack(codec, size, body).lower()
        if any(needle in plain for needle in needles):
            parts.add(sequence)
    carry(conn, parts, nodes, turn)
    found = set(users(conn, parts, nodes, turn))
    found |= _in_previews(conn, text)
    of, values = _of(scenario)
    if scenario is not None:
        found &= {row[0] for row in conn.execute(f"SELECT sequence FROM records WHERE 1{of}", values).fetchall()}
    if not found:
        raise NotFound("no record holds this text", "reef records list")
    return sorted(found)


def carry(conn: sqlite3.Connection, parts: Bits, nodes: Bits, turn: Turn) -> None:
    """Add to `nodes` every node whose chain holds one of `parts` or of `nodes`."""
    for sequence, previous, part, child in _each(
        conn, "SELECT sequence, previous, part, child FROM chains", _WINDOW, turn
    ):
        if (
            (part is not None and part in parts)
            or (previous is not None and previous in nodes)
            or (child is not None and child in nodes)
        ):
            nodes.add(sequence)


def users(conn: sqlite3.Connection, parts: Bits, nodes: Bits, turn: Turn) -> list[int]:
    """The records that point at one of `parts` or `nodes`."""
    found = []
    for sequence, *roots in _each(conn, f"SELECT sequence, {', '.join(ROOTS)} FROM records", _WINDOW, turn):
        if any(number is not None and number in (nodes if place % 2 else parts) for place, number in enumerate(roots)):
            found.append(int(sequence))
    return found


def _each(conn: sqlite3.Connection, select: str, window: int, turn: Turn) -> Iterator[tuple[Any, ...]]:
    after = 0
    while rows := conn.execute(f"{select} WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, window)).fetchall():
        yield from rows
        after = rows[-1][0]
        turn()


def _needles(text: str) -> set[bytes]:
    """`text` as it may stand in a body: as it is, and as JSON writes it in either way."""
    if len(text.strip()) < _LEAST:
        raise InvalidInput(f"the text to look for has fewer than {_LEAST} characters", "reef records forget --help")
    written = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    return {form.encode("utf-8", "replace").lower() for form in written}


def _in_previews(conn: sqlite3.Connection, text: str) -> set[int]:
    columns = ("preview", "answer_preview", "error")
    where = " OR ".join(f"instr(lower({column}), lower(?))" for column in columns)
    found = conn.execute(f"SELECT sequence FROM records WHERE {where}", (text,) * len(columns)).fetchall()
    return {int(row[0]) for row in found}


def _of(scenario: str | None) -> tuple[str, list[str]]:
    return ("", []) if scenario is None else (" AND scenario = ? COLLATE NOCASE", [scenario])
