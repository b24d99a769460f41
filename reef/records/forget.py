"""Removing records and what was made from them, in slices that a call's row does not wait for.

A forgetting is written down before it begins: ids and numbers, no text. Whatever stops it, it is begun again from the
front and does again what is not done. Records go with the rows that are theirs alone; the parts that they shared with
one another go with `reef.records.sweep`, the words of the index with `reef.records.search`, and the file is put in
order by `reef.records.shrink`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from reef import events
from reef.errors import Conflict, Failed
from reef.ids import from_blob, new_id, to_blob, utc_now
from reef.records import search, totals
from reef.records.rows import add_event
from reef.records.sweep import ROOTS, Freed, Turn, sweep
from reef.records.writer import Writer

Row = dict[str, Any]

FORGOTTEN = "forgotten"
"""What stands where a text was that a row cannot be without."""

_SLICE_S = 0.01
_IDS = 200
_EVENTS = 2000
_RUNNING = ("running",)


def write_down(conn: sqlite3.Connection, plan: Row) -> str:
    """Store what is to be forgotten and return its id. `plan` is what `made_from` found.

    Raises Conflict while a step reads it, or while another forgetting is not finished.
    """
    if unfinished(conn) is not None:
        raise Conflict("an earlier forgetting is not finished", "reef records forget --finish")
    for row in plan["steps"]:
        if row["state"] in _RUNNING and "steps" not in plan["keep"]:
            raise Conflict(
                f"step {row['step']} of {row['scenario']} is running and reads these records",
                f"reef steps cancel {row['step']} -s {row['scenario']}",
            )
    id = new_id()
    kept = {
        "sessions": plan["sessions"],
        "reports": [row["id"] for row in plan["reports"]],
        "asks": [row["id"] for row in plan["asks"]],
        "steps": [[row["scenario"], row["step"], row["candidate"]] for row in plan["steps"]],
        "tasks": plan["tasks"],
        "versions": [[row["scenario"], row["version"]] for row in plan["versions"]],
        "keep": plan["keep"],
    }
    sequence = conn.execute(
        "INSERT INTO forgettings (id, at, plan_json) VALUES (?, ?, ?)", (to_blob(id), utc_now(), json.dumps(kept))
    ).lastrowid
    conn.executemany(
        "INSERT INTO to_forget (forgetting, record) VALUES (?, ?)",
        [(sequence, to_blob(receipt)) for receipt in plan["receipts"]],
    )
    # Before the events about the records go: the number of the newest event must not be given again.
    add_event(conn, events.RECORDS_FORGOTTEN, None, {"forgetting": id, "records": len(plan["receipts"])}, "running")
    return id


def unfinished(conn: sqlite3.Connection) -> Row | None:
    """The forgetting that is not finished, with its `receipts`, or None."""
    row = conn.execute("SELECT sequence, id, at, plan_json FROM forgettings ORDER BY sequence LIMIT 1").fetchone()
    if row is None:
        return None
    receipts = conn.execute("SELECT record FROM to_forget WHERE forgetting = ? ORDER BY sequence", (row[0],)).fetchall()
    found: Row = json.loads(row[3])
    return found | {"id": from_blob(row[1]), "at": row[2], "receipts": [from_blob(item[0]) for item in receipts]}


def finish(conn: sqlite3.Connection, id: str) -> None:
    """Take the note of a forgetting away: nothing of it is left to do."""
    row = conn.execute("SELECT sequence FROM forgettings WHERE id = ?", (to_blob(id),)).fetchone()
    if row is None:
        return
    number = conn.execute("DELETE FROM to_forget WHERE forgetting = ?", (row[0],)).rowcount
    conn.execute("DELETE FROM forgettings WHERE sequence = ?", (row[0],))
    add_event(conn, events.RECORDS_FORGOTTEN, None, {"forgetting": id, "records": number}, "done")


def remove(reading: sqlite3.Connection, writer: Writer, plan: Row, turn: Turn) -> Freed:
    """Remove the records of `plan`, what was made from them unless it is kept, and the parts that nothing uses then."""
    freed = Freed()
    todo = [to_blob(receipt) for receipt in plan["receipts"]]
    while todo:
        done, size = writer.submit(partial(_remove_some, todo[:_IDS]), essential=False).result()
        todo = todo[done:]
        freed.bytes += size
        turn()
    for step in _made(plan):
        writer.submit(step, essential=False).result()
        turn()
    _remove_events(reading, writer, plan, turn)
    swept = sweep(reading, writer, turn)
    freed.nodes, freed.parts, freed.bytes = swept.nodes, swept.parts, freed.bytes + swept.bytes
    merge_index(writer, turn)
    return freed


def merge_index(writer: Writer, turn: Turn) -> None:
    """Write the index anew without the words that were taken out; until then they are in the file."""
    first = True
    while writer.submit(partial(search.merge, first=first), essential=False).result() or first:
        first = False
        turn()


def take_bodies(conn: sqlite3.Connection, sequence: int) -> int:
    """Take a record out of the index and its own parts out of the store; returns their bytes.

    What it shares with other records is left to a sweep, once the record no longer points there.
    """
    row = conn.execute(f"SELECT {', '.join(ROOTS)} FROM records WHERE sequence = ?", (sequence,)).fetchone()
    try:
        search.unindex(conn, [sequence])
    except Failed:
        # A damaged body cannot say which words it brought: the index is made anew without it.
        search.begin_anew(conn)
    own = [
        part
        for part in row[::2]
        if part is not None
        and conn.execute("SELECT 1 FROM parts WHERE sequence = ? AND hash IS NULL", (part,)).fetchone() is not None
    ]
    conn.execute("DELETE FROM progress WHERE record = ?", (sequence,))
    return totals.delete_parts(conn, own)


def _remove_some(records: Sequence[bytes], conn: sqlite3.Connection) -> tuple[int, int]:
    """Remove some of the records, as many as a slice has time for; returns how many and their own bytes."""
    until = time.monotonic() + _SLICE_S
    done = freed = removed = 0
    for record in records:
        row = conn.execute("SELECT sequence FROM records WHERE id = ? AND state != 'open'", (record,)).fetchone()
        if row is not None:
            freed += take_bodies(conn, row[0])
            for table in ("report_references", "task_records"):
                conn.execute(f"DELETE FROM {table} WHERE record = ?", (row[0],))
            conn.execute("DELETE FROM records WHERE sequence = ?", (row[0],))
            removed += 1
        done += 1
        if time.monotonic() > until:
            break
    totals.add(conn, totals.FORGOTTEN_RECORDS, removed)
    return done, freed


def _made(plan: Row) -> Iterable[Callable[[sqlite3.Connection], None]]:
    """The operations that remove what was made from the records."""
    keep = plan["keep"]
    for report in plan["reports"] if "reports" not in keep else ():
        yield partial(_remove_report, to_blob(report))
    for ask in plan["asks"] if "asks" not in keep else ():
        yield partial(_blank_ask, to_blob(ask))
    for scenario, step, _ in plan["steps"] if "steps" not in keep else ():
        yield partial(_blank_step, scenario, step)
    for session in plan["sessions"]:
        yield partial(_remove_session, session)


def _remove_report(report: bytes, conn: sqlite3.Connection) -> None:
    row = conn.execute("SELECT sequence FROM reports WHERE id = ?", (report,)).fetchone()
    if row is not None:
        for table in ("report_references", "report_revisions"):
            conn.execute(f"DELETE FROM {table} WHERE report = ?", row)
        conn.execute("DELETE FROM reports WHERE sequence = ?", row)


def _blank_ask(ask: bytes, conn: sqlite3.Connection) -> None:
    """The row stays, since the numbers of asks are not given again; its text does not."""
    conn.execute(
        "UPDATE asks SET text = ?, session = NULL, requires_json = NULL, client_json = NULL, content_hash = NULL,"
        " reason = ?, state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END WHERE id = ?",
        (FORGOTTEN, FORGOTTEN, ask),
    )


def _blank_step(scenario: str, step: int, conn: sqlite3.Connection) -> None:
    """Every step keeps its row: number, state and times. All that was written in it goes."""
    where = "scenario = ? AND number = ?"
    conn.execute(
        "UPDATE steps SET summary = NULL, reason = ?, asks_json = NULL, consumed_json = NULL, evaluation_json = NULL,"
        f" mutations_json = NULL, candidate = NULL, metrics_json = NULL, notes_json = NULL, state_json = NULL"
        f" WHERE {where}",
        (FORGOTTEN, scenario, step),
    )
    for table in ("activities", "episodes"):
        conn.execute(f"DELETE FROM {table} WHERE scenario = ? AND step = ?", (scenario, step))
    conn.execute(
        "UPDATE versions SET summary = NULL, evaluation_json = NULL WHERE scenario = ? AND step = ?"
        " AND state = 'conflict'",
        (scenario, step),
    )
    conn.execute(
        "DELETE FROM sessions WHERE kind = 'step' AND scenario = ? AND step = ? AND closed_at IS NOT NULL",
        (scenario, step),
    )


def _remove_session(key: str, conn: sqlite3.Connection) -> None:
    """A session of which no call is left; one that is still open keeps its row and loses what it says."""
    if conn.execute("SELECT 1 FROM records WHERE session = ?", (key,)).fetchone() is not None:
        return
    conn.execute("DELETE FROM sessions WHERE key = ? AND closed_at IS NOT NULL", (key,))
    conn.execute("UPDATE sessions SET title = NULL, cwd = NULL WHERE key = ?", (key,))


def _remove_events(reading: sqlite3.Connection, writer: Writer, plan: Row, turn: Turn) -> None:
    """Remove the events that name a record or a report that is gone."""
    gone = set(plan["receipts"]) | (set(plan["reports"]) if "reports" not in plan["keep"] else set())
    after = 0
    while rows := reading.execute(
        "SELECT sequence, ids_json FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, _EVENTS)
    ).fetchall():
        after = rows[-1][0]
        named = [(row[0],) for row in rows if not gone.isdisjoint(_named(row[1]))]
        for start in range(0, len(named), _IDS):
            writer.submit(partial(_delete_events, named[start : start + _IDS]), essential=False).result()
        turn()


def _delete_events(events: Sequence[tuple[int]], conn: sqlite3.Connection) -> None:
    conn.executemany("DELETE FROM events WHERE sequence = ? AND sequence < (SELECT max(sequence) FROM events)", events)


def _named(ids: str) -> set[str]:
    """The ids in an event."""
    found = json.loads(ids)
    several = found.get("records")
    return {str(found.get("record")), str(found.get("report")), *(several if isinstance(several, list) else ())}
