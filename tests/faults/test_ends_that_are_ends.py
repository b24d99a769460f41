"""What ends a stream ends its record; a stream that only stops does not, and nobody is told that it completed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.gateway.serving import DIALECTS, serving

REASONS = {
    "chat": ("stop", "length"),
    "responses": ("completed", "max_output_tokens"),
    "messages": ("end_turn", "max_tokens"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_both_normal_ends_make_a_whole_record_with_the_receipt_on_the_last_event(
    tmp_path: Path, dialect: str
) -> None:
    async with serving(tmp_path) as reef:
        for place, words in enumerate(("hello", "hello [[length]]")):
            reply = await reef.ask(dialect, words, stream=True)
            receipt = reply.headers["x-reef-agent-record-id"]
            last = reply.events[-2] if dialect == "chat" else reply.events[-1]
            assert last["reef"] == {"agent_record_id": receipt}
            if dialect == "responses":
                assert last["type"] == ("response.completed", "response.incomplete")[place]
            row = (await reef.settled(place + 1))[place]
            assert (row["receipt"], row["state"]) == (receipt, "complete")
            assert row["finish_reason"] == REASONS[dialect][place]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_bare_close_is_no_end(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "hello [[no done]]", stream=True)
        assert not reply.broken
        assert b"agent_record_id" not in reply.body and b"response.completed" not in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("partial", 0)
        assert row["error"] == "the stream ended without its last event"
        assert row["answer_preview"] == "You said: hello"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_that_breaks_off_ends_with_the_dialects_error(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "[[paced 50 5ms]] [[die after 8]]", stream=True)
        last = reply.events[-1]
        assert "broke off" in last["error"]["message"]
        assert last.get("type") == (None if dialect == "chat" else "error")
        assert b"agent_record_id" not in reply.body and b"message_stop" not in reply.body
        row = (await reef.settled())[0]
        assert row["state"] == "failed" and "broke off" in row["error"]
        assert row["answer_preview"].startswith("word0 word1")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_upstream_that_is_gone_is_an_error_in_the_dialects_shape(tmp_path: Path, dialect: str) -> None:
    from reef.engines.upstream import UpstreamEngine

    async with serving(tmp_path, engine=UpstreamEngine("http://127.0.0.1:9", "m", dialects=DIALECTS)) as reef:
        reply = await reef.ask(dialect, "hello", stream=True)
        assert reply.status == 502 and "127.0.0.1:9" in reply.json["error"]["message"]
        assert (reply.json.get("type") == "error") is (dialect == "messages")
        row = (await reef.settled())[0]
        assert (row["state"], row["receipt"]) == ("failed", reply.headers["x-reef-agent-record-id"])
        assert json.loads(reef.response_of(row) or b"") == reply.json


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_daemon_that_stops_tells_running_streams_in_their_dialect(tmp_path: Path, dialect: str) -> None:
    import asyncio

    async with serving(tmp_path) as reef:
        call = asyncio.create_task(reef.ask(dialect, "[[paced 100 50ms]]", stream=True))
        await asyncio.sleep(0.5)
        await reef.gateway.drain(0.1)
        last = (await call).events[-1]
        assert "stopping" in last["error"]["message"]
        assert (await reef.settled())[0]["state"] == "partial"
        late = await reef.ask(dialect, "more")
        assert late.status == 503 and "stopping" in late.json["error"]["message"]
