"""Keeping the store within its size: the oldest bodies go first, rows and receipts stay and say `body pruned`.

How much a body holds for itself is not known before the rest is looked at, since later calls repeat what earlier ones
said. So the oldest bodies are taken that together hold at least what is too much, then what nobody uses is swept, and
when that was too little the next ones follow. Never taken is what a step that is not over may still read, and what a
task is made of.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reef import events
from reef.credentials import clean
from reef.errors import NotFound
from reef.ids import to_blob, utc_now
from reef.records import shrink, totals
from reef.records.forget import merge_index, take_bodies
from reef.records.rows import add_event
from reef.records.sweep import ROOTS, Bits, Turn, reach, sweep
from reef.records.writer import Writer

Row = dict[str, Any]

EVENTS_KEPT = timedelta(days=30)
"""How long an event is there for those who were away."""

_SLICE_S = 0.01
_IDS = 200
_WINDOW = 500
_BODIES = " OR ".join(f"records.{name} IS NOT NULL" for name in ROOTS)
_OLDEST = f"""SELECT sequence, {", ".join(ROOTS)} FROM records
 WHERE sequence > ? AND pruned_at IS NULL AND state != 'open' AND request_hash IS NOT NULL AND ({_BODIES})
 ORDER BY sequence LIMIT ?"""


@dataclass(frozen=True)
class Needs:
    """What retention must leave, beside what tasks are made of."""

    learning: frozenset[str] = frozenset()
    """Scenarios whose recipe learns from reports: a record with an unused one may be read by their next step."""
    reports: int = 1000
    """The newest unused reports of a scenario that one step looks at."""


def prune(
    reading: sqlite3.Connection, writer: Writer, keep_bytes: int, needs: Needs, turn: Turn, give_back: bool = True
) -> Row:
    """Prune until the bodies take at most `keep_bytes`, or nothing is left that may go.

    Returns `{"records", "bytes", "bodies_before", "bodies_after", "store_before", "store_after"}`.
    """
    path = writer.path
    before, store_before = count(writer, turn), shrink.size(path)
    if writer.submit(totals.read, essential=False).result().get(totals.SWEEP_DUE):
        # An earlier time was stopped: what it took is still counted.
        _sweep(reading, writer, turn)
    records = 0
    at, left = 0, count(writer, turn)
    while left > keep_bytes:
        chosen, at = _oldest(reading, writer, at, left - keep_bytes, needs, turn)
        if not chosen:
            break
        records += _take(writer, chosen, needs, turn)
        _sweep(reading, writer, turn)
        left = count(writer, turn)
    if records or left < before:
        merge_index(writer, turn)
        writer.submit(partial(_told, records, before - left), essential=False).result()
    if give_back:
        shrink.give_back(writer, turn)
        _empty_log(path, turn)
    return {
        "records": records,
        "bytes": before - left,
        "bodies_before": before,
        "bodies_after": left,
        "store_before": store_before,
        "store_after": shrink.size(path),
    }


def count(writer: Writer, turn: Turn) -> int:
    """The stored bytes of all bodies."""
    while writer.submit(totals.count_bodies, essential=False).result():
        turn()
    return int(writer.submit(lambda conn: totals.read(conn).get(totals.BODIES, 0), essential=False).result())


def prune_events(writer: Writer, turn: Turn, now: datetime | None = None) -> int:
    """Remove the events that are older than `EVENTS_KEPT`. The newest stays, so that its number is not given again."""
    until = (now or datetime.now(UTC)) - EVENTS_KEPT
    gone = 0
    while some := writer.submit(partial(_old_events, f"{until:%Y-%m-%dT%H:%M:%S.000Z}"), essential=False).result():
        gone += some
        turn()
    return gone


def keep_for_task(conn: sqlite3.Connection, task: str, receipt: str) -> None:
    """Keep a record's bodies for as long as `task` is there. Raises NotFound."""
    row = conn.execute("SELECT sequence FROM records WHERE id = ?", (to_blob(receipt),)).fetchone()
    if row is None:
        raise NotFound(f"there is no record {receipt}", "reef records list")
    conn.execute("INSERT INTO task_records (task, record) VALUES (?, ?)", (clean(task), row[0]))


def release_task(conn: sqlite3.Connection, task: str) -> None:
    """Let go of the records that `task` was made of."""
    conn.execute("DELETE FROM task_records WHERE task = ?", (clean(task),))


def _oldest(
    reading: sqlite3.Connection, writer: Writer, after: int, wanted: int, needs: Needs, turn: Turn
) -> tuple[list[int], int]:
    """The oldest records behind `after` whose bodies hold `wanted` bytes together, and the last that was looked at."""
    chosen: list[int] = []
    parts, nodes = Bits(), Bits()
    size = 0
    while size < wanted:
        rows = reading.execute(_OLDEST, (after, _WINDOW)).fetchall()
        if not rows:
            break
        kept = writer.submit(partial(needed, [row[0] for row in rows], needs), essential=False).result()
        for sequence, *roots in rows:
            after = sequence
            if sequence in kept:
                continue
            chosen.append(sequence)
            size += _size(reading, roots, parts, nodes)
            if size >= wanted:
                break
        turn()
    return chosen, after


def needed(sequences: Sequence[int], needs: Needs, conn: sqlite3.Connection) -> set[int]:
    """Those of the records that must keep their bodies."""
    first, last = sequences[0], sequences[-1]
    between = "BETWEEN ? AND ?"
    found = {row[0] for row in conn.execute(f"SELECT record FROM task_records WHERE record {between}", (first, last))}
    for scenario in needs.learning:
        floor = conn.execute(
            "SELECT sequence FROM reports WHERE scenario = ? AND consumed_by IS NULL AND withdrawn_at IS NULL"
            " ORDER BY sequence DESC LIMIT 1 OFFSET ?",
            (scenario, needs.reports),
        ).fetchone()
        found |= {
            row[0]
            for row in conn.execute(
                "SELECT report_references.record FROM report_references JOIN reports"
                " ON reports.sequence = report_references.report WHERE reports.scenario = ? AND reports.sequence > ?"
                f" AND consumed_by IS NULL AND withdrawn_at IS NULL AND report_references.record {between}",
                (scenario, floor[0] if floor else 0, first, last),
            )
        }
    # Sessions that an ask which is not settled was made in, and those of steps that are running.
    keys = {
        row[0]
        for row in conn.execute(
            "SELECT session FROM asks WHERE state IN ('queued', 'running') AND session IS NOT NULL UNION"
            " SELECT key FROM sessions WHERE lower(hex(id)) IN (SELECT session FROM asks"
            " WHERE state IN ('queued', 'running')) UNION"
            " SELECT sessions.key FROM steps JOIN sessions ON sessions.kind = 'step'"
            " AND sessions.scenario = steps.scenario AND sessions.step = steps.number WHERE steps.state = 'running'"
        )
    }
    for key in keys:
        rows = conn.execute(
            f"SELECT sequence FROM records WHERE session = ? AND sequence {between}", (key, first, last)
        )
        found |= {row[0] for row in rows}
    return found


def _size(conn: sqlite3.Connection, roots: Iterable[int | None], parts: Bits, nodes: Bits) -> int:
    """The stored bytes of a record's parts that were not counted before."""
    return sum(_part_size(conn, part, parts) for part in reach(conn, roots, nodes))


def _part_size(conn: sqlite3.Connection, part: int, parts: Bits) -> int:
    if part in parts:
        return 0
    parts.add(part)
    row = conn.execute("SELECT length(body) FROM parts WHERE sequence = ?", (part,)).fetchone()
    return int(row[0]) if row else 0


def _take(writer: Writer, chosen: list[int], needs: Needs, turn: Turn) -> int:
    """Take the bodies of the chosen records; returns of how many."""
    taken = at = 0
    while at < len(chosen):
        done, some = writer.submit(partial(_take_some, chosen[at : at + _IDS], needs), essential=False).result()
        at += done
        taken += some
        turn()
    return taken


def _sweep(reading: sqlite3.Connection, writer: Writer, turn: Turn) -> None:
    sweep(reading, writer, turn)
    writer.submit(partial(totals.put, totals.SWEEP_DUE, 0), essential=False).result()


def _take_some(sequences: Sequence[int], needs: Needs, conn: sqlite3.Connection) -> tuple[int, int]:
    """Take the bodies of as many records as a slice has time for; of none that is needed by now."""
    until = time.monotonic() + _SLICE_S
    kept = needed(sequences, needs, conn)
    nowhere = ", ".join(f"{name} = NULL" for name in ROOTS)
    done = taken = 0
    for sequence in sequences:
        row = conn.execute("SELECT 1 FROM records WHERE sequence = ? AND pruned_at IS NULL", (sequence,)).fetchone()
        if row is not None and sequence not in kept:
            take_bodies(conn, sequence)
            conn.execute(f"UPDATE records SET {nowhere}, pruned_at = ? WHERE sequence = ?", (utc_now(), sequence))
            taken += 1
        done += 1
        if time.monotonic() > until:
            break
    totals.add(conn, totals.PRUNED_RECORDS, taken)
    totals.put(totals.SWEEP_DUE, 1, conn)
    return done, taken


def _told(records: int, size: int, conn: sqlite3.Connection) -> None:
    totals.add(conn, totals.PRUNED_BYTES, size)
    add_event(conn, events.RECORDS_PRUNED, None, {"records": records, "bytes": size}, "done")


def _old_events(until: str, conn: sqlite3.Connection) -> int:
    return conn.execute(
        "DELETE FROM events WHERE at < ? AND sequence IN (SELECT sequence FROM events"
        " WHERE sequence < (SELECT max(sequence) FROM events) ORDER BY sequence LIMIT ?)",
        (until, _WINDOW),
    ).rowcount


def _empty_log(path: Path, turn: Turn) -> None:
    """The file is cut when its log is emptied; while somebody reads, that is left to a later time."""
    try:
        shrink.empty_log(path, turn, wait_s=2.0)
    except shrink.LogHeld:
        return
