"""Lists of sessions: those that a wrapper or a step opened, and those that only the key of their calls names."""

from __future__ import annotations

import sqlite3
from typing import Any

from reef.credentials import clean
from reef.errors import NotFound
from reef.ids import from_blob, is_id, to_blob
from reef.records import shapes
from reef.records.lists import clause

Row = dict[str, Any]
_OF = "records.session = ? AND records.scenario = ? COLLATE NOCASE"
_UNOPENED = """SELECT session, scenario FROM (SELECT session, scenario, min(sequence) AS first FROM records
 WHERE session IS NOT NULL GROUP BY session, scenario) AS known{more} AND NOT EXISTS (
 SELECT 1 FROM sessions WHERE sessions.key = known.session AND sessions.scenario = known.scenario COLLATE NOCASE)
 ORDER BY first DESC LIMIT ?"""
_ENDS = f"SELECT min(sequence), max(sequence) FROM records WHERE {_OF}"


def listed(
    conn: sqlite3.Connection,
    cwd: str | None = None,
    scenario: str | None = None,
    limit: int = 20,
    kind: str = "agent",
) -> list[Row]:
    """Sessions with their calls so far, newest first.

    Beside those of wrappers (`kind` agent), or of steps (`step`) alone, stand those that only calls name (`calls`):
    without id, directory and end, as new as their first call. With `cwd` only sessions that were opened there.
    """
    where, values = ["sessions.kind = ?"], [kind]
    for column, value in (("cwd", cwd), ("scenario", scenario)):
        if value is not None:
            where.append(f"sessions.{column} = ?" + (" COLLATE NOCASE" if column == "scenario" else ""))
            values.append(clean(value))
    rows = conn.execute(
        f"{shapes.SELECT_SESSIONS}{clause(where)} ORDER BY sessions.sequence DESC LIMIT ?", (*values, limit)
    ).fetchall()
    found = [with_calls(conn, shapes.session(row)) for row in rows]
    if cwd is not None or kind == "step":
        return found
    found += _unopened(conn, scenario, limit)
    return sorted(found, key=lambda row: str(row["opened_at"]), reverse=True)[:limit]


def session(conn: sqlite3.Connection, name: str, scenario: str | None = None) -> Row:
    """One session, of any kind, by its id or its key; the last one where several have the key. Raises NotFound."""
    key = clean(name)
    where, values = ["sessions.key = ?"], list[Any]([key])
    if is_id(name):
        where, values = ["(sessions.key = ? OR sessions.id = ?)"], [key, to_blob(name)]
    if scenario is not None:
        where.append("sessions.scenario = ? COLLATE NOCASE")
        values.append(scenario)
    row = conn.execute(
        f"{shapes.SELECT_SESSIONS}{clause(where)} ORDER BY sessions.sequence DESC LIMIT 1", values
    ).fetchone()
    if row is not None:
        return with_calls(conn, shapes.session(row))
    of = conn.execute(
        "SELECT scenario FROM records WHERE session = ?"
        + (" AND scenario = ? COLLATE NOCASE" if scenario else "")
        + " ORDER BY sequence DESC LIMIT 1",
        (key, *([scenario] if scenario else ())),
    ).fetchone()
    if of is None:
        raise NotFound(f"there is no session {name[:64]!r}", "reef sessions list")
    return _of_calls(conn, key, of[0])


def with_calls(conn: sqlite3.Connection, row: Row) -> Row:
    """A session with `calls, last_receipt, last_preview, last_at, score` (the person's latest in the session)."""
    place = (row["key"], row["scenario"])
    calls = conn.execute(f"SELECT count(*) FROM records WHERE {_OF}", place).fetchone()[0]
    last = conn.execute(
        f"SELECT id, preview, started_at FROM records WHERE {_OF} AND side_call = 0 ORDER BY sequence DESC LIMIT 1",
        place,
    ).fetchone()
    score = conn.execute(
        "SELECT reports.score FROM reports JOIN report_references ON report_references.report = reports.sequence"
        f" JOIN records ON records.sequence = report_references.record WHERE {_OF}"
        " AND reports.source = 'person' AND reports.withdrawn_at IS NULL AND reports.score IS NOT NULL"
        " ORDER BY coalesce(reports.revised_at, reports.created_at) DESC, reports.sequence DESC LIMIT 1",
        place,
    ).fetchone()
    receipt, preview, at = last or (None, None, None)
    return row | {
        "calls": calls,
        "last_receipt": from_blob(receipt) if receipt else None,
        "last_preview": preview,
        "last_at": at,
        "score": score[0] if score else None,
    }


def _unopened(conn: sqlite3.Connection, scenario: str | None, limit: int) -> list[Row]:
    more, values = (" WHERE 1", ()) if scenario is None else (" WHERE scenario = ?", (scenario,))
    rows = conn.execute(_UNOPENED.format(more=more), (*values, limit)).fetchall()
    return [_of_calls(conn, *row) for row in rows]


def _of_calls(conn: sqlite3.Connection, key: str, scenario: str) -> Row:
    first, last = conn.execute(_ENDS, (key, scenario)).fetchone()
    opened = conn.execute("SELECT started_at FROM records WHERE sequence = ?", (first,)).fetchone()[0]
    adapter, version = conn.execute("SELECT adapter, version FROM records WHERE sequence = ?", (last,)).fetchone()
    found = {"id": None, "key": key, "scenario": scenario, "adapter": adapter, "version": version, "cwd": None}
    found |= {"title": None, "opened_at": opened, "closed_at": None, "kind": "calls", "pid": None}
    return with_calls(conn, found)
