"""Retention: the oldest bodies go first, what is still needed stays, and the counters are right."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from reef import events
from reef.records import reports, retention, rows, shrink, totals
from reef.records.reader import Reader
from reef.records.retention import Needs
from reef.records.schema import open_readonly
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

KB = 1000
Prune = Callable[..., dict[str, Any]]


@pytest.fixture
def prune(writer: Writer, store: Path) -> Iterator[Prune]:
    reading = open_readonly(store)
    yield lambda keep, needs=None: retention.prune(reading, writer, keep, needs or Needs(), lambda: None)
    reading.close()


def body() -> bytes:
    return os.urandom(50).hex().encode() * 20 + os.urandom(20 * KB)


def old(writer: Writer, number: int, **fields: Any) -> list[str]:
    return [recorded(writer, body(), b"{}", **fields) for _ in range(number)]


def kept(reader: Reader, receipts: list[str]) -> list[int]:
    """Which of the receipts still have their request."""
    return [at for at, receipt in enumerate(receipts) if reader.request_bytes(receipt) is not None]


def write(writer: Writer, operation: Callable[[sqlite3.Connection], Any]) -> Any:
    return writer.submit(operation).result(30)


def test_the_oldest_bodies_go_first_and_their_rows_stay(writer: Writer, reader: Reader, prune: Prune) -> None:
    receipts = old(writer, 10)
    rows_before = [reader.record(receipt) for receipt in receipts]
    told = prune(70 * KB)
    assert kept(reader, receipts) == [7, 8, 9]
    assert (told["records"], told["bodies_after"] <= 70 * KB, told["bodies_before"] > 200 * KB) == (7, True, True)
    for before, receipt in zip(rows_before, receipts, strict=True):
        now = reader.record(receipt)
        assert bool(now.pop("pruned_at")) == (receipt in receipts[:7])
        before.pop("pruned_at")
        assert now == before
    assert prune(70 * KB)["records"] == 0


def test_what_a_later_call_repeats_stays_with_it(writer: Writer, reader: Reader, prune: Prune) -> None:
    messages: list[dict[str, str]] = []
    receipts = []
    for _ in range(8):
        messages.append({"role": "user", "content": os.urandom(5 * KB).hex()})
        receipts.append(recorded(writer, orjson.dumps({"messages": messages}), session="one"))
    last = reader.request_bytes(receipts[-1])
    other = old(writer, 1)
    # All but the newest of the session go, and free next to nothing: it repeats them.
    prune(70 * KB)
    assert kept(reader, receipts) == [] or reader.request_bytes(receipts[-1]) == last
    assert kept(reader, other) == [0]
    assert write(writer, lambda conn: conn.execute("PRAGMA foreign_key_check").fetchall()) == []


def test_a_record_with_a_report_that_a_recipe_may_still_use_keeps_its_bodies(
    writer: Writer, reader: Reader, prune: Prune
) -> None:
    receipts = old(writer, 6)
    for at, more in ((1, {}), (2, {"consumed_by": 4}), (3, {"withdrawn_at": "2026-01-01T00:00:00.000Z"})):
        report = {"score": 1, "references": [receipts[at]]}
        row = write(writer, lambda conn, report=report: reports.store_report(conn, "default", report, "person"))[0]
        for column, value in more.items():
            sql = f"UPDATE reports SET {column} = ? WHERE id = ?"
            write(
                writer, lambda conn, sql=sql, value=value, id=row["id"]: conn.execute(sql, (value, bytes.fromhex(id)))
            )
    prune(0, Needs(frozenset({"default"})))
    assert kept(reader, receipts) == [1]
    # Where no recipe learns from reports nobody will ask for the body.
    prune(0)
    assert kept(reader, receipts) == []


def test_only_the_newest_reports_that_a_step_looks_at_count(writer: Writer, reader: Reader, prune: Prune) -> None:
    receipts = old(writer, 4)
    for receipt in receipts:
        report = {"score": 1, "references": [receipt]}
        write(writer, lambda conn, report=report: reports.store_report(conn, "default", report, "person"))
    prune(0, Needs(frozenset({"default"}), reports=2))
    assert kept(reader, receipts) == [2, 3]


def test_what_an_unfinished_step_an_open_ask_or_a_task_needs_stays(
    writer: Writer, reader: Reader, prune: Prune
) -> None:
    asked, by_step, task, plain = (old(writer, 1, session=key)[0] for key in ("asked", "by-step", "task", "plain"))
    ask = write(writer, lambda conn: rows.add_ask(conn, "default", "please", session="asked"))[0]
    write(writer, lambda conn: rows.add_step(conn, "default", recipe="reefine", state="running"))
    write(writer, lambda conn: rows.open_session(conn, "default", kind="step", step=1, key="by-step"))
    write(writer, lambda conn: retention.keep_for_task(conn, "first task", task))
    running = opened(writer, body())
    receipts = [asked, by_step, task, plain, running]
    prune(0)
    assert kept(reader, receipts) == [0, 1, 2, 4]
    write(writer, lambda conn: rows.set_ask(conn, ask, state="rejected"))
    write(writer, lambda conn: rows.update_step(conn, "default", 1, state="rejected"))
    write(writer, lambda conn: retention.release_task(conn, "first task"))
    settled(writer, running)
    prune(0)
    assert kept(reader, receipts) == []


def test_the_counters_are_those_of_the_store_and_survive_a_restart(store: Path) -> None:
    writer = Writer(store)
    old(writer, 5)
    first = retention.count(writer, lambda: None)
    reading = open_readonly(store)
    told = retention.prune(reading, writer, 0, Needs(), lambda: None)
    reading.close()
    old(writer, 2)
    writer.close()
    again = Writer(store)
    held = retention.count(again, lambda: None)
    found = write(again, totals.read)
    real = write(again, lambda conn: conn.execute("SELECT coalesce(sum(length(body)), 0) FROM parts").fetchone()[0])
    again.close()
    assert held == real and first == told["bodies_before"]
    assert (found[totals.PRUNED_RECORDS], found[totals.PRUNED_BYTES]) == (5, first)


def test_the_file_shrinks(writer: Writer, store: Path, prune: Prune) -> None:
    old(writer, 100)
    before = shrink.size(store)
    told = prune(200 * KB)
    assert told["store_before"] == before > 2_000 * KB
    assert shrink.size(store) == told["store_after"] < 700 * KB


def test_a_prune_that_is_stopped_anywhere_takes_no_more_the_next_time(
    writer: Writer, reader: Reader, store: Path, prune: Prune
) -> None:
    receipts = old(writer, 40)
    stops = 0
    for turns in range(12):
        left = iter([None] * turns)

        def stop(left: Iterator[None] = left) -> None:
            if next(left, "over") == "over":
                raise InterruptedError

        reading = open_readonly(store)
        try:
            retention.prune(reading, writer, 300 * KB, Needs(), stop)
        except InterruptedError:
            stops += 1
        reading.close()
    prune(300 * KB)
    assert stops > 2
    assert kept(reader, receipts) == list(range(26, 40))
    assert retention.count(writer, lambda: None) <= 300 * KB


def test_events_go_after_thirty_days_and_the_newest_stays(writer: Writer, reader: Reader) -> None:
    for _ in range(3):
        write(writer, lambda conn: rows.add_event(conn, events.ENGINE_CHANGED, None, {}))
    write(writer, lambda conn: conn.execute("UPDATE events SET at = '2026-01-01T00:00:00.000Z' WHERE sequence < 3"))
    now = datetime(2026, 1, 30, tzinfo=UTC)
    assert retention.prune_events(writer, lambda: None, now) == 0
    assert retention.prune_events(writer, lambda: None, now.replace(month=2, day=1)) == 2
    assert [row["sequence"] for row in reader.events()] == [3]
