"""Calls of one group that are written together: few statements, and each call still stands or falls alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from reef import events
from reef.errors import InvalidInput, NotFound
from reef.ids import new_id, to_blob
from reef.records import many
from reef.records.calls import OpenRecord, Settlement, flush_progress, settle_records, store_records
from reef.records.reader import Reader
from reef.records.schema import open_store
from reef.records.spans import WHOLE_BELOW
from reef.records.writer import Grouped, Writer
from tests.unit.records.calling import Hold, add, limit_pages, opened


class Call(Grouped):
    """A call as the gateway has it written; `end=None` is one that still runs."""

    def __init__(self, number: int, receipt: str | None = None, end: Settlement | None = None) -> None:
        self.receipt = receipt or new_id()
        self.row = OpenRecord(self.receipt, "default", "chat", "/v1", b'{"number":%d}' % number, model=f"m{number}")
        self.end = end or Settlement("complete", response=b'{"reply":%d}' % number, status=200)

    @classmethod
    def together(cls, conn: sqlite3.Connection, operations: Sequence[Call]) -> None:
        store_records(conn, [(call.row, call.end) for call in operations])


def of(number: int, call: Call, reader: Reader) -> bool:
    """Whether the store gives back what call `number` was."""
    record = reader.record(call.receipt)
    bodies = reader.request_bytes(call.receipt), reader.response_bytes(call.receipt)
    return (record["model"], *bodies) == (f"m{number}", b'{"number":%d}' % number, b'{"reply":%d}' % number)


def test_a_group_of_calls_takes_a_few_statements(store: Path) -> None:
    connection = open_store(store)
    said: list[str] = []
    connection.set_trace_callback(said.append)
    Call.together(connection, [Call(number) for number in range(many.ROWS // 2)])
    connection.set_trace_callback(None)
    assert [line.split()[:3] for line in said] == [["INSERT", "INTO", name] for name in ("parts", "records", "events")]
    connection.close()


@pytest.mark.parametrize("count", [2, 3, many.ROWS - 1, many.ROWS + 1, 3 * many.ROWS + 7])
def test_every_call_of_a_group_of_any_size_keeps_its_own_bodies(writer: Writer, reader: Reader, count: int) -> None:
    hold = Hold(writer)
    calls = [Call(number) for number in range(count)]
    futures = [writer.submit(call) for call in calls]
    hold.release()
    assert [future.result(30) for future in futures] == [None] * count
    assert all(of(number, call, reader) for number, call in enumerate(calls))
    told = [(event["kind"], event["ids"]["record"]) for event in reader.events(limit=1000)]
    assert told == [(events.RECORD_SETTLED, call.receipt) for call in calls]


def test_open_and_ended_calls_and_calls_with_large_bodies_share_a_group(writer: Writer, reader: Reader) -> None:
    long = b"x" * (2 * WHOLE_BELOW)
    kinds = [Call(0), Call(1), Call(2), Call(3)]
    kinds[1].end = None  # type: ignore[assignment]
    kinds[2].end = Settlement("failed", response=long, raw=b"data: 1\n\n", error="no")
    kinds[3].row.request = None
    kinds[3].row.request_bytes = 77
    hold = Hold(writer)
    futures = [writer.submit(call) for call in kinds]
    hold.release()
    for future in futures:
        future.result(30)
    found = [reader.record(call.receipt) for call in kinds]
    assert [record["state"] for record in found] == ["complete", "open", "failed", "complete"]
    assert [record["request_bytes"] for record in found] == [12, 12, 12, 77]
    assert [reader.response_bytes(call.receipt) for call in kinds] == [b'{"reply":0}', None, long, b'{"reply":3}']
    assert reader.raw_bytes(kinds[2].receipt) == b"data: 1\n\n"
    assert [event["kind"] for event in reader.events()][1] == events.RECORD_OPENED


def test_a_call_of_a_group_that_cannot_be_written_fails_alone(writer: Writer, reader: Reader) -> None:
    calls = [Call(number) for number in range(5)]
    twice, nameless = Call(5, calls[1].receipt), Call(6, "no id")
    hold = Hold(writer)
    futures = [writer.submit(call) for call in (*calls[:3], twice, nameless, *calls[3:])]
    between = writer.submit(add(n=1))
    hold.release()
    with pytest.raises(sqlite3.IntegrityError):
        futures.pop(3).result(30)
    with pytest.raises(InvalidInput):
        futures.pop(3).result(30)
    for future in (*futures, between):
        future.result(30)
    assert all(of(number, call, reader) for number, call in enumerate(calls))
    assert reader.counts()["records"]["count"] == 5
    assert (writer.lost, writer.failure) == (0, None)


def test_a_full_disk_fails_the_call_that_does_not_fit_and_keeps_the_others(writer: Writer, reader: Reader) -> None:
    writer.submit(Call(0)).result(30)
    limit_pages(writer, 8)
    small, large = [Call(number) for number in range(1, 4)], Call(4)
    large.end = Settlement("complete", response=os.urandom(100_000))
    hold = Hold(writer)
    futures = [writer.submit(call) for call in (*small, large)]
    hold.release()
    for future in futures[:3]:
        future.result(30)
    assert futures[3].exception(30) is not None
    assert writer.lost == 1
    assert all(of(number, call, reader) for number, call in enumerate(small, 1))


def test_operations_of_other_kinds_keep_their_place_between_calls(writer: Writer) -> None:
    seen: list[object] = []
    first, last = Call(0), Call(1)

    def count(conn: sqlite3.Connection) -> None:
        seen.append([row[0] for row in conn.execute("SELECT id FROM records ORDER BY sequence")])

    hold = Hold(writer)
    futures = [writer.submit(operation) for operation in (count, first, count, last, count)]
    hold.release()
    for future in futures:
        future.result(30)
    ids = [to_blob(first.receipt), to_blob(last.receipt)]
    assert seen == [[], ids[:1], ids]


def test_ends_of_one_group_are_written_together_and_only_the_first_of_a_call_counts(
    writer: Writer, reader: Reader
) -> None:
    receipts = [opened(writer, streaming=True) for _ in range(2 * many.ROWS)]
    for receipt in receipts:
        writer.submit(lambda conn, receipt=receipt: flush_progress(conn, receipt, b"so far")).result(30)  # type: ignore[misc]
    ends = [
        (receipt, Settlement("complete", response=b"reply %d" % number, raw=b"data: %d\n\n" % number))
        for number, receipt in enumerate(receipts)
    ]
    writer.submit(lambda conn: settle_records(conn, [*ends, (receipts[0], Settlement("failed", error="late"))])).result(
        30
    )
    for number, receipt in enumerate(receipts):
        assert reader.record(receipt)["state"] == "complete"
        assert reader.response_bytes(receipt) == b"reply %d" % number
        assert reader.raw_bytes(receipt) == b"data: %d\n\n" % number
    kinds = [event["kind"] for event in reader.events(limit=1000)]
    assert kinds.count(events.RECORD_SETTLED) == len(receipts)
    left = writer.submit(lambda conn: conn.execute("SELECT count(*) FROM progress").fetchone()[0])
    assert left.result(30) == 0


def test_ends_of_which_one_has_no_row_raise_and_leave_the_others_to_be_written_alone(
    writer: Writer, reader: Reader
) -> None:
    receipt = opened(writer)
    ends = [(receipt, Settlement("complete", response=b"{}")), (new_id(), Settlement("complete"))]
    with pytest.raises(NotFound):
        writer.submit(lambda conn: settle_records(conn, ends)).result(30)
    assert reader.record(receipt)["state"] == "open"
