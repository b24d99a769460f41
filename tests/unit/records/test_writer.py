"""The one writer: groups, failures of one operation, trouble with the file, and coming back from it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from reef import events
from reef.errors import InvalidInput
from reef.records import rows
from reef.records import writer as writing
from reef.records.reader import Reader
from reef.records.writer import RecordingFailed, Writer
from tests.unit.records.calling import Hold, add, limit_pages, recorded


@pytest.fixture
def other(store: Path, writer: Writer) -> Iterator[sqlite3.Connection]:
    """Another program that has the store open."""
    connection = sqlite3.connect(store, isolation_level=None)
    yield connection
    connection.close()


def test_a_result_is_on_disk_when_the_future_has_it(writer: Writer, other: sqlite3.Connection) -> None:
    sequence = writer.submit(add(n=1)).result(30)
    assert other.execute("SELECT sequence FROM events").fetchall() == [(sequence,)]


def test_what_waits_is_committed_as_one_group(writer: Writer) -> None:
    commits: list[int] = []
    writer.after_commit(lambda: commits.append(1))
    hold = Hold(writer)
    futures = [writer.submit(add(n=n)) for n in range(50)]
    hold.release()
    assert [future.result(30) for future in futures] == list(range(1, 51))
    assert len(commits) == 2


def test_a_group_waits_a_moment_for_more_only_behind_one_of_several(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "GATHER_S", 60)
    for _ in range(5):
        writer.submit(add()).result(30)
    hold = Hold(writer)
    several = [writer.submit(add()) for _ in range(writing.GATHER_FROM)]
    monkeypatch.setattr(writing, "GATHER_S", 0.3)
    hold.release()
    several[-1].result(30)
    commits: list[int] = []
    writer.after_commit(lambda: commits.append(1))
    for future in [writer.submit(add()) for _ in range(writing.GATHER_FROM - 1)]:
        future.result(30)
    assert len(commits) == 1


def test_closing_leaves_one_file_although_a_reader_is_open(store: Path, writer: Writer, reader: Reader) -> None:
    recorded(writer)
    assert reader.counts()["records"]["count"] == 1
    log = store.with_name(store.name + "-wal")
    assert log.stat().st_size
    writer.close()
    assert not log.exists() or not log.stat().st_size
    assert reader.counts()["records"]["count"] == 1


def test_a_group_waits_for_nobody_when_as_many_are_there_as_before(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "GATHER_S", 60)
    more: list[Future[int]] = []

    def bring_more(conn: sqlite3.Connection) -> None:
        more.extend(writer.submit(add()) for _ in range(writing.GATHER_FROM))

    hold = Hold(writer)
    several = [writer.submit(add()) for _ in range(writing.GATHER_FROM - 1)]
    last = writer.submit(bring_more)
    hold.release()
    for future in (*several, last):
        future.result(30)
    assert [future.exception(30) for future in more] == [None] * writing.GATHER_FROM


def test_an_operation_that_raises_undoes_itself_and_no_other(writer: Writer, reader: Reader) -> None:
    def half(conn: sqlite3.Connection) -> None:
        rows.add_event(conn, events.ENGINE_CHANGED, None, {"n": "half"})
        raise InvalidInput("no")

    hold = Hold(writer)
    good = [writer.submit(add(n=n)) for n in range(3)]
    bad = writer.submit(half)
    statement = writer.submit(lambda conn: conn.execute("SELECT * FROM nowhere"))
    last = writer.submit(add(n=3))
    hold.release()
    with pytest.raises(InvalidInput, match="no"):
        bad.result(30)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        statement.result(30)
    for future in [*good, last]:
        future.result(30)
    assert [event["ids"]["n"] for event in reader.events()] == [0, 1, 2, 3]
    assert (writer.lost, writer.failure) == (0, None)


def test_an_operation_alone_that_raises_leaves_nothing(writer: Writer, reader: Reader) -> None:
    def half(conn: sqlite3.Connection) -> None:
        rows.add_event(conn, events.ENGINE_CHANGED, None, {})
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        writer.submit(half).result(30)
    assert reader.events() == []
    assert writer.submit(add()).result(30) == 1


async def test_a_group_wakes_the_loop_once(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    calls: list[Any] = []
    original = loop.call_soon_threadsafe

    def counted(callback: Any, *arguments: Any, **more: Any) -> Any:
        calls.append(callback)
        return original(callback, *arguments, **more)

    hold = Hold(writer)
    waiting = [asyncio.ensure_future(writer.write(add(n=n))) for n in range(40)]
    await asyncio.sleep(0)
    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    hold.release()
    assert await asyncio.gather(*waiting) == list(range(1, 41))
    assert len(calls) == 1


async def test_a_cancelled_wait_does_not_disturb_the_others_and_the_row_is_there(
    writer: Writer, reader: Reader
) -> None:
    hold = Hold(writer)
    left = asyncio.ensure_future(writer.write(add(n="left")))
    stays = asyncio.ensure_future(writer.write(add(n="stays")))
    dropped = writer.submit(add(n="dropped"))
    await asyncio.sleep(0)
    left.cancel()
    dropped.cancel()
    hold.release()
    assert await stays == 3
    with pytest.raises(asyncio.CancelledError):
        await left
    assert [event["ids"]["n"] for event in reader.events()] == ["dropped", "left", "stays"]


def test_a_loop_that_was_closed_meanwhile_does_not_stop_the_writer(writer: Writer) -> None:
    hold: list[Hold] = []

    async def leave() -> None:
        hold.append(Hold(writer))
        writer.begin(add(n=1))

    asyncio.run(leave())
    hold[0].release()
    assert writer.submit(add(n=2)).result(30) == 2


def test_a_locked_store_fails_what_waits_and_writing_resumes_by_itself(
    writer: Writer, reader: Reader, other: sqlite3.Connection
) -> None:
    writer.submit(lambda conn: conn.execute("PRAGMA busy_timeout=100").fetchone()).result(30)
    other.execute("BEGIN IMMEDIATE")
    lost = [writer.submit(add(n="lost")), writer.submit(add(n="progress"), essential=False)]
    for future in lost:
        with pytest.raises(RecordingFailed, match="locked") as caught:
            future.result(30)
        assert caught.value.hint
    assert writer.lost == 1
    assert writer.failure is not None and "locked" in writer.failure
    other.execute("ROLLBACK")
    writer.submit(add(n="kept")).result(30)
    assert writer.failure is None
    told = reader.events()
    assert [(event["kind"], event["ids"]) for event in told] == [
        (events.RECORDING_LOST, {"lost": 1}),
        (events.ENGINE_CHANGED, {"n": "kept"}),
    ]
    writer.submit(add(n="later")).result(30)
    assert [event["kind"] for event in reader.events()].count(events.RECORDING_LOST) == 1


def test_a_short_lock_only_delays(writer: Writer, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    future = writer.submit(add())
    time.sleep(0.3)
    assert not future.done()
    other.execute("ROLLBACK")
    assert future.result(30) == 1


def test_a_full_disk_loses_what_does_not_fit_keeps_what_does_and_resumes(writer: Writer, reader: Reader) -> None:
    kept = recorded(writer)
    limit_pages(writer, 4)
    hold = Hold(writer)
    body = bytes(range(256)) * 400
    large = writer.submit(lambda conn: conn.execute("INSERT INTO progress (record, body) VALUES (1, ?)", (body,)))
    small = writer.submit(add(n="small"))
    hold.release()
    with pytest.raises(RecordingFailed, match="full"):
        large.result(30)
    assert small.result(30) > 0
    assert writer.lost == 1
    limit_pages(writer, None)
    again = recorded(writer, body)
    assert reader.request_bytes(again) == body
    assert reader.request_bytes(kept) == b'{"messages":[]}'
    assert reader.counts()["records"]["count"] == 2


def test_no_more_is_queued_than_a_slow_disk_may_hold_up(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKLOG_BYTES", 1000)
    hold = Hold(writer)
    first = writer.submit(add(), size=900)
    with pytest.raises(RecordingFailed, match="too slow"):
        writer.submit(add(), size=200)
    small = writer.submit(add())
    hold.release()
    first.result(30), small.result(30)
    assert writer.lost == 1
    writer.submit(add(), size=900).result(30)


def test_one_operation_larger_than_the_backlog_is_accepted_when_nothing_waits(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BACKLOG_BYTES", 1000)
    assert writer.submit(add(), size=5000).result(30) == 1


def test_closing_writes_what_waits_and_refuses_what_comes_later(store: Path) -> None:
    writer = Writer(store)
    hold = Hold(writer)
    futures: list[Future[Any]] = [writer.submit(add(n=n)) for n in range(10)]
    closing = threading.Thread(target=writer.close)
    closing.start()
    while not writer._closed:
        time.sleep(0.001)
    with pytest.raises(RecordingFailed, match="closed"):
        writer.submit(add())
    hold.release()
    closing.join(30)
    assert [future.result(0) for future in futures] == list(range(1, 11))
    assert len(Reader(store).events()) == 10
    writer.close()


def test_a_listener_hears_of_every_commit_and_of_no_failure(writer: Writer) -> None:
    heard: list[int] = []
    writer.after_commit(lambda: heard.append(1))
    writer.submit(add()).result(30)
    with pytest.raises(InvalidInput):
        writer.submit(lambda conn: rows.set_ask(conn, "no id", state="failed")).result(30)
    assert len(heard) <= 2
    writer.submit(add()).result(30)
    assert 2 <= len(heard) <= 3


def test_a_fault_in_a_listener_leaves_nobody_waiting(writer: Writer, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise ZeroDivisionError("listener")

    writer.after_commit(broken)
    with pytest.raises(RecordingFailed):
        writer.submit(add()).result(30)
    writer._after_commit.clear()
    assert writer.submit(add()).result(30) > 0
    assert "the writer failed" in caplog.text
