"""Every way in which a call can end leaves one record that says so."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import PATHS, Serving, serving


async def test_a_reply_carries_a_receipt_that_resolves_when_it_arrives(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat("hello", {"x-reef-session": "s1", "x-reef-tag-client": "c"})
        receipt = reply.headers["x-reef-agent-record-id"]
        row = reef.records()[0]
        assert row["receipt"] == receipt == reply.headers["request-id"]
        assert reply.headers["x-reef-release-id"] == "a" * 40
        assert (row["state"], row["session"], row["preview"], row["source"]) == ("complete", "s1", "hello", "program")
        usage = reply.json["usage"]
        assert row["prompt_tokens"] == usage["prompt_tokens"] > 0
        assert row["completion_tokens"] == usage["completion_tokens"] > 0
        assert row["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] > 0
        assert row["engine"] == "upstream" and row["dialect"] == "chat" and row["status"] == 200
        assert json.loads(row["tags_json"]) == {"client": "c"}
        assert 0 < row["first_byte_ms"] <= row["duration_ms"] < 5000


async def test_the_row_is_there_before_the_first_byte_of_a_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "[[slow first 300ms]]"}]}
        async with reef.client.post(f"{reef.url}/v1/chat/completions", json=body) as reply:
            receipt = reply.headers["x-reef-agent-record-id"]
            rows = reef.records()
            assert [(row["receipt"], row["state"]) for row in rows] == [(receipt, "open")]
            text = await reply.text()
        # The event with the receipt was sent when the record's end was stored.
        assert receipt in text and reef.records()[0]["state"] == "complete"


@pytest.mark.parametrize("where", ["last", "before", "every"])
async def test_usage_is_found_wherever_it_stands(tmp_path: Path, where: str) -> None:
    async with serving(tmp_path) as reef:
        await reef.chat(f"hello [[usage {where}]]", stream=True)
        await reef.chat("hello [[usage none]]", stream=True)
        rows = await reef.settled(2)
        assert rows[0]["completion_tokens"] == 3 and rows[0]["cached_tokens"] > 0
        assert rows[1]["completion_tokens"] is None


async def test_a_tool_call_in_pieces_is_stored_as_one(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    async with serving(tmp_path) as reef:
        await reef.chat('[[tool bash {"command": "ls -la"}]]', stream=True, tools=tools)
        row = (await reef.settled())[0]
        message = reef.message_of(row)
        assert message["tool_calls"] == [
            {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls -la"}'}}
        ]
        assert row["finish_reason"] == "tool_calls"
        assert row["answer_preview"] == 'bash({"command": "ls -la"})'


async def test_reasoning_is_kept_apart_from_the_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await reef.chat("[[reasoning hm hm]] hello", stream=True)
        row = (await reef.settled())[0]
        message = reef.message_of(row)
        assert (message["reasoning_content"], message["content"]) == ("hm hm", "You said: hello")


async def test_an_error_inside_a_stream_is_relayed_and_the_record_failed(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        first = await reef.chat("[[error first]]", stream=True)
        assert first.events[0]["error"]["message"] == "quota exceeded" and first.events[-1] == "[DONE]"
        await reef.chat("hello [[error after 2]]", stream=True)
        rows = await reef.settled(2)
        assert [(row["state"], row["error"]) for row in rows] == [
            ("failed", "quota exceeded"),
            ("failed", "engine fell over"),
        ]


@pytest.mark.parametrize("words", ["[[no done]]", "[[no done]] [[no finish]]"])
async def test_a_stream_without_its_last_event_is_partial(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat(f"hello {words}", stream=True)
        assert b"[DONE]" not in reply.body and b"agent_record_id" not in reply.body and not reply.broken
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("partial", 0)


async def test_a_stream_that_breaks_off_tells_the_client_and_fails(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat("[[paced 50 5ms]] [[die after 4]]", stream=True)
        assert "broke off" in reply.events[-1]["error"]["message"]
        assert b"[DONE]" not in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["answer_preview"]) == ("failed", "word0 word1 word2")


async def test_a_body_that_breaks_off_before_anything_was_sent_is_a_502(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat("[[die after 1]]")
        row = (await reef.settled())[0]
        assert row["state"] == "failed" and "broke off" in row["error"]
        assert reply.broken or reply.status == 502


async def test_an_upstream_that_is_down_gives_502_and_a_failed_record(tmp_path: Path) -> None:
    async with serving(tmp_path, engine=UpstreamEngine("http://127.0.0.1:9/v1?key=UP789", "m", "sk-UP-456")) as reef:
        reply = await reef.chat("hello")
        assert reply.status == 502 and "127.0.0.1:9" in reply.json["error"]["message"]
        assert b"UP789" not in reply.body and b"sk-UP" not in reply.body
        row = reef.records()[0]
        assert (row["state"], row["status"]) == ("failed", 502)
        assert row["receipt"] == reply.headers["x-reef-agent-record-id"]
        assert reef.engine.describe()["state"] == "down"


class Faulty(UpstreamEngine):
    """An engine with a fault that nobody has thought of."""

    async def find_dialects(self) -> frozenset[str] | None:
        raise LookupError("sk-not-for-anybody")


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_a_fault_of_reef_itself_is_an_error_in_the_clients_shape_and_the_record_has_an_end(
    tmp_path: Path, path: str
) -> None:
    async with serving(tmp_path, engine=Faulty("http://127.0.0.1:9", "m")) as reef:
        reply = await reef.send(b'{"model": "m"}', path=path)
        assert reply.status == 500 and "reef failed inside this call" in reply.json["error"]["message"]
        assert b"sk-not" not in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["status"], row["receipt"]) == ("failed", 500, reply.headers["x-reef-agent-record-id"])


async def test_an_upstream_that_says_nothing_times_out(tmp_path: Path) -> None:
    async with serving(tmp_path, timeout_s=0.3) as reef:
        reply = await reef.chat("[[slow 3s]]")
        assert reply.status == 504
        assert (await reef.settled())[0]["state"] == "failed"


@pytest.mark.parametrize(
    ("words", "stream", "reads"),
    [("[[slow 20s]]", False, False), ("[[slow first 20s]]", True, False), ("[[paced 200 100ms]]", True, True)],
    ids=["before the headers", "before the first event", "in the middle"],
)
async def test_a_client_that_leaves_closes_the_upstream(tmp_path: Path, words: str, stream: bool, reads: bool) -> None:
    async with serving(tmp_path) as reef:
        body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": words}]}
        async with aiohttp.ClientSession() as leaving:
            got: list[bytes] = []
            call = asyncio.create_task(_read_some(leaving, reef, body, got))
            await _until(lambda: bool(reef.seen("request")) and len(got) >= stream)
            await _until(lambda: not reads or b"word0" in b"".join(got))
            call.cancel()
        left = time.monotonic()
        while not reef.seen("end"):
            assert time.monotonic() - left < 2, "the upstream still works"
            await asyncio.sleep(0.02)
        assert reef.seen("end")[0]["how"] == "client gone"
        row = (await reef.settled())[0]
        assert row["state"] == "cancelled"
        assert (row["answer_preview"] or "").startswith("word0") is reads
        assert (await reef.chat("next")).status == 200


async def _read_some(client: aiohttp.ClientSession, reef: Serving, body: dict[str, object], got: list[bytes]) -> None:
    async with client.post(f"{reef.url}/v1/chat/completions", json=body) as reply:
        got.append(b"the headers")
        async for block in reply.content.iter_any():
            got.append(block)


async def _until(question: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not question():
            await asyncio.sleep(0.01)


async def test_a_kept_connection_that_died_is_replaced_once_and_noted(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await reef.chat("[[close]] one")
        reply = await reef.chat("two")
        assert reply.status == 200
        rows = await reef.settled(2)
        assert len(rows) == 2
        attempts = rows[1]["attempts_json"]
        assert attempts is None or len(json.loads(attempts)) == 2


async def test_what_a_stream_has_said_is_flushed_while_it_runs(tmp_path: Path) -> None:
    import sqlite3

    async with serving(tmp_path) as reef:
        call = asyncio.create_task(reef.chat("[[paced 60 50ms]]", stream=True))
        await asyncio.sleep(2.2)
        with sqlite3.connect(f"file:{reef.writer.path}?mode=ro", uri=True) as connection:
            flushed = b"".join(row[0] for row in connection.execute("SELECT body FROM progress ORDER BY sequence"))
        # 1.5 s of text at most are missing.
        assert flushed.startswith(b"word0 word1 ") and flushed.count(b"word") >= 12
        await call
        with sqlite3.connect(f"file:{reef.writer.path}?mode=ro", uri=True) as connection:
            assert connection.execute("SELECT count(*) FROM progress").fetchone()[0] == 0


async def test_a_stopping_gateway_lets_calls_end_and_then_tells_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        short = asyncio.create_task(reef.chat("[[paced 5 100ms]]", stream=True))
        long = asyncio.create_task(reef.chat("[[paced 100 100ms]]", stream=True))
        waiting = asyncio.create_task(reef.chat("[[slow 20s]]"))
        await _until(lambda: reef.gateway.running == 3)
        await reef.gateway.drain(1.0)
        assert reef.gateway.running == 0
        assert (await short).events[-1] == "[DONE]"
        ended = await long
        assert ended.events[-1]["error"]["code"] == "stopping" and "[DONE]" not in ended.events
        assert (await waiting).status == 503
        assert (await reef.chat("more")).status == 503
        states = sorted((row["streaming"], row["state"]) for row in reef.records())
        assert states == [(0, "partial"), (1, "complete"), (1, "partial")]
