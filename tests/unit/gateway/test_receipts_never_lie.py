"""No byte carries a receipt that a reader cannot resolve at that moment, and recording trouble changes no answer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reef.records.writer import RecordingFailed, Writer
from tests.unit.gateway.serving import serving


def hold(writer: Writer) -> threading.Event:
    """Keep the writer's thread busy until the returned event is set."""
    release = threading.Event()

    def wait(_: sqlite3.Connection) -> None:
        release.wait(20)

    writer.submit(wait)
    return release


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stalled_writer_costs_the_receipt_and_a_quarter_of_a_second(tmp_path: Path, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        release = hold(reef.writer)
        began = time.monotonic()
        reply = await reef.chat("hello", stream=stream)
        took = time.monotonic() - began
        release.set()
        assert reply.status == 200 and b"You said" in reply.body
        assert "x-reef-agent-record-id" not in reply.headers and "request-id" not in reply.headers
        assert reply.headers["x-reef-unrecorded"] == "the record store does not answer in time"
        assert b"agent_record_id" not in reply.body
        assert 0.2 < took < 1.5
        assert reef.gateway.unrecorded == 1
        # The row is written all the same when the store comes back.
        assert (await reef.settled())[0]["state"] == "complete"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_store_that_cannot_be_written_costs_the_receipt_only(tmp_path: Path, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        with sqlite3.connect(reef.writer.path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            reply = await reef.chat("hello", stream=stream)
            assert reply.status == 200 and b"You said" in reply.body
            assert "x-reef-unrecorded" in reply.headers and "x-reef-agent-record-id" not in reply.headers
            other.execute("ROLLBACK")


async def test_a_call_that_is_lost_counts_once_however_many_writes_it_takes(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reef.writer.submit(lambda conn: conn.execute("PRAGMA busy_timeout=20").fetchone()).result(30)
        with sqlite3.connect(reef.writer.path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            for count, (words, stream) in enumerate(
                [("[[paced 3 100ms]]", True), ("hello", False), ("[[big 300kb]]", True), ("x" * 300_000, False)], 1
            ):
                assert (await reef.chat(words, stream=stream)).status == 200
                end = time.monotonic() + 5
                while reef.gateway.lost < count and time.monotonic() < end:
                    await asyncio.sleep(0.01)
            lost_writes = reef.writer.submit(lambda conn: None)
            with pytest.raises(RecordingFailed):
                await asyncio.to_thread(lost_writes.result, 30)
            other.execute("ROLLBACK")
        await reef.chat("hello")
        await asyncio.sleep(0)
        assert reef.gateway.lost == 4 < reef.writer.lost


@pytest.mark.parametrize("words", ["hello", "[[paced 50 5ms]] [[die after 4]]"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_can_have_no_record_is_answered_all_the_same(
    tmp_path: Path, stream: bool, words: str
) -> None:
    async with serving(tmp_path) as reef:
        same = await reef.chat(words, stream=stream)
        (before,) = await reef.settled()
        reef.call = replace(reef.call, unrecorded="the disk is full")
        reply = await reef.chat(words, stream=stream)
        assert (reply.status, reply.broken) == (same.status, same.broken)
        assert reply.headers["x-reef-unrecorded"] == "the disk is full"
        assert "x-reef-agent-record-id" not in reply.headers and b"agent_record_id" not in reply.body
        assert ("[DONE]" in reply.body.decode()) == ("[DONE]" in same.body.decode())
        assert [row["receipt"] for row in reef.records()] == [before["receipt"]]
        assert (reef.gateway.unrecorded, reef.gateway.lost) == (1, 1)


async def test_a_row_whose_end_cannot_be_stored_gives_no_second_receipt(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        call = asyncio.create_task(reef.chat("[[paced 5 100ms]]", stream=True))
        while not reef.records():
            await asyncio.sleep(0.02)
        release = hold(reef.writer)
        reply = await call
        release.set()
        # The header's receipt resolves to the open row; the event would have said that the end is stored.
        assert reply.headers["x-reef-agent-record-id"] == reef.records()[0]["receipt"]
        assert reply.events[-1] == "[DONE]" and b"agent_record_id" not in reply.body


async def test_a_closed_store_still_serves(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reef.writer.close()
        for stream in (False, True):
            reply = await reef.chat("hello", stream=stream)
            assert reply.status == 200 and b"You said" in reply.body
            assert reply.headers["x-reef-unrecorded"] == "the record store is closed"


async def test_many_calls_at_once_each_get_their_own_receipt(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        replies = await asyncio.gather(*(reef.chat(f"call {number}", stream=number % 2 == 0) for number in range(40)))
        receipts = {reply.headers["x-reef-agent-record-id"] for reply in replies}
        rows = reef.records()
        assert reef.gateway.unrecorded == 0
        assert len(receipts) == 40 and {row["receipt"] for row in rows} == receipts
        by_receipt = {row["receipt"]: row for row in rows}
        for number, reply in enumerate(replies):
            row = by_receipt[reply.headers["x-reef-agent-record-id"]]
            assert (row["preview"], row["state"]) == (f"call {number}", "complete")
            assert f"You said: call {number}" in reply.body.decode() or row["streaming"]
