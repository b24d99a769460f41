"""Calls of clients whose dialect the upstream does not speak: answered in their own, recorded as they saw it."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import PATHS, Reply, Serving, asking, serving

WAYS = [("messages", "chat"), ("responses", "chat"), ("chat", "messages"), ("messages", "responses")]
"""The client's dialect, and the only one of the upstream."""
ROUTES = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
LAST = {"chat": "[DONE]", "messages": "message_stop", "responses": "response.completed"}
CALL = '[[reasoning look first]] [[tool bash {"command": "ls"}]] list the files'


def text_of(dialect: str, reply: dict[str, Any]) -> str:
    """The text of a whole reply."""
    if dialect == "chat":
        return str(reply["choices"][0]["message"]["content"])
    blocks = reply["content"] if dialect == "messages" else [p for i in reply["output"] for p in i.get("content") or ()]
    return "".join(block["text"] for block in blocks if block["type"] in ("text", "output_text"))


def call_of(dialect: str, reply: dict[str, Any]) -> tuple[str, str, Any]:
    """The id, name and arguments of a whole reply's tool call."""
    if dialect == "chat":
        call = reply["choices"][0]["message"]["tool_calls"][0]
        return call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])
    if dialect == "messages":
        block = next(block for block in reply["content"] if block["type"] == "tool_use")
        return block["id"], block["name"], block["input"]
    item = next(item for item in reply["output"] if item["type"] == "function_call")
    return item["call_id"], item["name"], json.loads(item["arguments"])


def turn_after(dialect: str, request: dict[str, Any], reply: dict[str, Any], result: str) -> dict[str, Any]:
    """The next request of a session: the history, the reply, and the result of its tool call."""
    call_id = call_of(dialect, reply)[0]
    if dialect == "chat":
        more = [reply["choices"][0]["message"], {"role": "tool", "tool_call_id": call_id, "content": result}]
        return request | {"messages": request["messages"] + more}
    if dialect == "messages":
        answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        more = [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": [answer]}]
        return request | {"messages": request["messages"] + more}
    output = {"type": "function_call_output", "call_id": call_id, "output": result}
    return request | {"input": [*request["input"], *reply["output"], output]}


async def send(reef: Serving, dialect: str, request: dict[str, Any]) -> Reply:
    """Make one call."""
    return await reef.send(
        json.dumps(request).encode(), {"anthropic-beta": "b", "openai-beta": "b"}, "", PATHS[dialect]
    )


def kinds(reply: Reply) -> list[Any]:
    """What the events of a stream are."""
    return [event if isinstance(event, str) else event.get("type") for event in reply.events]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_a_session_with_a_tool_runs_through_another_dialect(
    tmp_path: Path, client: str, upstream: str, stream: bool
) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        first = asking(client, CALL, ("bash",), stream=stream)
        reply = await send(reef, client, first)
        assert reply.status == 200 and reply.headers["x-reef-translated"] == f"{client} to {upstream}"
        row = (await reef.settled(1))[0]
        assert (row["state"], row["dialect"], row["trainable"]) == ("complete", client, 1)
        assert row["receipt"] == reply.headers["x-reef-agent-record-id"] == reply.headers["request-id"]
        assert json.loads(row["notes_json"])["translated"] == {"from": client, "to": upstream}
        assert json.loads(reef.request_of(row) or b"") == first
        said = reef.stored(row)
        if stream:
            assert LAST[client] in kinds(reply)
            marked = reply.events[-2] if client == "chat" else reply.events[-1]
            assert marked["reef"]["agent_record_id"] == row["receipt"]
        else:
            assert said == reply.json
        assert call_of(client, said)[1:] == ("bash", {"command": "ls"})
        assert row["prompt_tokens"] > 0 and row["completion_tokens"] > 0
        second = await send(reef, client, turn_after(client, first, said, "one.txt"))
        rows = await reef.settled(2)
        assert second.status == 200
        assert text_of(client, reef.stored(rows[1])) == "The tool said: one.txt"
        seen = reef.seen()
        assert [call["path"] for call in seen] == [ROUTES[upstream]] * 2
        assert "anthropic-beta" not in seen[0]["headers"] and "openai-beta" not in seen[0]["headers"]
        assert ("anthropic-version" in seen[0]["headers"]) is (upstream == "messages")
        assert seen[0]["headers"]["authorization"] == "Bearer sk-upstream"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_an_error_of_the_upstream_has_the_clients_shape_its_status_and_the_time_to_wait(
    tmp_path: Path, client: str, upstream: str, stream: bool
) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        for status, wait in ((529, "7"), (429, "3"), (400, "1")):
            reply = await reef.ask(client, f"[[status {status} retry-after {wait}]]", stream=stream)
            assert (reply.status, reply.headers["retry-after"]) == (status, wait)
            assert reply.json["error"]["message"] == "scripted error"
            assert (reply.json.get("type") == "error") is (client == "messages")
            assert "x-reef-agent-record-id" in reply.headers
        rows = await reef.settled(3)
        assert [(row["state"], row["status"]) for row in rows] == [("failed", s) for s in (529, 429, 400)]
        assert len(reef.seen()) == 3


@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_a_failure_in_the_middle_is_an_error_of_the_clients_dialect_and_no_normal_end(
    tmp_path: Path, client: str, upstream: str
) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        for words in ("[[paced 50 2ms]] [[error after 4]]", "[[paced 50 2ms]] [[die after 9]]", "[[error first]]"):
            reply = await reef.ask(client, words, stream=True)
            assert reply.status == 200 and not reply.broken
            last = reply.events[-1]
            error = last["response"]["error"] if last.get("type") == "response.failed" else last.get("error", last)
            assert any(said in error["message"] for said in ("fell over", "broke off", "quota")), error
            assert LAST[client] not in kinds(reply)
        rows = await reef.settled(3)
        assert [row["state"] for row in rows] == ["failed"] * 3
        assert [(row["answer_preview"] or "")[:5] for row in rows] == ["word0", "word0", ""]


@pytest.mark.parametrize(("client", "upstream"), WAYS)
async def test_a_stream_that_stops_without_its_end_is_partial_and_the_client_is_told(
    tmp_path: Path, client: str, upstream: str
) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        reply = await reef.ask(client, "hello [[no finish]] [[no done]]", stream=True)
        assert b"without its last event" in reply.body and LAST[client] not in kinds(reply)
        assert (await reef.settled())[0]["state"] == "partial"


LEAVING = [("[[slow 20s]]", False), ("[[slow 20s]]", True), ("[[slow first 20s]]", True), ("[[paced 200 50ms]]", True)]


@pytest.mark.parametrize(("words", "stream"), LEAVING, ids=["one body", "before headers", "before token", "mid stream"])
@pytest.mark.parametrize(("client", "upstream"), WAYS[:3])
async def test_a_client_that_leaves_closes_the_upstream(
    tmp_path: Path, client: str, upstream: str, words: str, stream: bool
) -> None:
    async def read(leaving: aiohttp.ClientSession) -> None:
        async with leaving.post(reef.url + PATHS[client], json=asking(client, words, stream=stream)) as reply:
            async for _ in reply.content.iter_any():
                continue

    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        async with aiohttp.ClientSession() as leaving:
            call = asyncio.create_task(read(leaving))
            await asyncio.sleep(0.5)
            call.cancel()
        left = time.monotonic()
        while not reef.seen("end"):
            assert time.monotonic() - left < 2, "the upstream still works"
            await asyncio.sleep(0.02)
        assert reef.seen("end")[0]["how"] == "client gone"
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("cancelled", 0)
        assert (row["answer_preview"] or "").startswith("word0") is words.startswith("[[paced")


async def test_what_a_translated_stream_has_said_is_flushed_while_it_runs_and_a_stop_ends_it_in_words(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        call = asyncio.create_task(reef.ask("messages", "[[paced 100 40ms]]", stream=True))
        await asyncio.sleep(1.8)
        with sqlite3.connect(f"file:{reef.writer.path}?mode=ro", uri=True) as connection:
            flushed = b"".join(row[0] for row in connection.execute("SELECT body FROM progress ORDER BY sequence"))
        assert flushed.startswith(b"word0 word1 ")
        await reef.gateway.drain(0.1)
        assert (await call).events[-1]["error"]["message"].startswith("reef is stopping")
        assert (await reef.settled())[0]["state"] == "partial"


@pytest.mark.parametrize(
    ("client", "upstream", "more", "field"),
    [
        ("messages", "chat", {"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
        ("responses", "chat", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("chat", "messages", {"n": 2}, "n"),
    ],
)
async def test_what_cannot_be_carried_is_refused_by_name_and_the_upstream_is_not_asked(
    tmp_path: Path, client: str, upstream: str, more: dict[str, Any], field: str
) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        reply = await reef.ask(client, "hello", **more)
        assert reply.status == 400 and f"`{field}`" in reply.json["error"]["message"]
        row = (await reef.settled())[0]
        assert (row["state"], row["status"]) == ("failed", 400) and reef.seen() == []


@pytest.mark.parametrize(
    ("client", "upstreams", "more", "taken"),
    [
        ("messages", ("chat", "responses"), {"stop_sequences": ["###"]}, "chat"),
        ("messages", ("chat", "responses"), {"temperature": 0}, "responses"),
        ("chat", ("responses", "messages"), {"stop": ["###"]}, "messages"),
    ],
)
async def test_what_the_best_dialect_of_a_server_cannot_carry_goes_in_another_that_it_speaks(
    tmp_path: Path, client: str, upstreams: tuple[str, ...], more: dict[str, Any], taken: str
) -> None:
    async with serving(tmp_path, speaks=upstreams, known=False) as reef:
        reply = await reef.ask(client, "hello", **more)
        assert (reply.status, text_of(client, reply.json)) == (200, "You said: hello")
        assert reply.headers["x-reef-translated"] == f"{client} to {taken}"
        assert reef.seen()[0]["path"] == PATHS[taken]


@pytest.mark.parametrize("depth", [250, 1015])
async def test_a_request_too_deep_to_be_written_again_is_refused_in_words(tmp_path: Path, depth: int) -> None:
    body = asking("messages", "hello", ("f",))
    body["tools"][0]["input_schema"] = {"enum": "DEEP"}
    deep = json.dumps(body).replace('"DEEP"', "[" * depth + "]" * depth)
    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        reply = await reef.send(deep.encode(), path=PATHS["messages"])
        row = (await reef.settled())[0]
        if depth < 1000:
            assert (reply.status, row["state"]) == (200, "complete")
        else:
            assert (reply.status, row["state"]) == (400, "failed")
            assert "nested too deep" in reply.json["error"]["message"]


async def test_tools_and_fields_that_are_left_out_are_named_in_a_header_and_in_the_record(tmp_path: Path) -> None:
    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        tools = [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {}}]
        body = asking("responses", "hello", x_new=1) | {"tools": tools}
        reply = await reef.send(json.dumps(body).encode(), path=PATHS["responses"])
        said = reply.headers["x-reef-translated"]
        assert "tools-left-out=web_search" in said and "fields-left-out=x_new" in said
        notes = json.loads((await reef.settled())[0]["notes_json"])["translated"]
        assert (notes["tools_left_out"], notes["fields_left_out"]) == (["web_search"], ["x_new"])


async def test_what_a_client_says_of_its_bytes_does_not_go_on_with_others(tmp_path: Path) -> None:
    digests = {
        "content-md5": "x",
        "digest": "md5=x",
        "content-digest": "md5=:x:",
        "repr-digest": "md5=:x:",
        "x-own": "1",
    }
    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        await reef.ask("messages", "hello", digests)
        await reef.ask("chat", "hello", digests)
        assert [sorted(set(call["headers"]) & set(digests)) for call in reef.seen()] == [["x-own"], sorted(digests)]


async def test_a_stream_that_nobody_asked_for_becomes_one_reply_of_the_clients_dialect(tmp_path: Path) -> None:
    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        reply = await reef.ask("messages", "hello [[stream anyway]]")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert text_of("messages", reply.json) == "You said: hello"
        assert reef.stored((await reef.settled())[0]) == reply.json


ANSWER = {
    "id": "c",
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
STREAM = (
    b"data: "
    + json.dumps({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
    + b"\n\ndata: [DONE]\n\n"
)
ODD = [
    ("application/json", None, json.dumps(ANSWER).encode(), "hi"),
    ("application/json", "gzip", gzip.compress(json.dumps(ANSWER).encode()), "hi"),
    ("text/event-stream", "gzip", gzip.compress(STREAM), "hi"),
    ("text/event-stream", "br", b"\x00\x01", "compressed in a way"),
    ("application/json", None, b"<html>", "not a JSON object"),
    ("application/json", None, b'{"error": {"message": "no luck"}}', "no luck"),
    ("application/json", None, b'{"choices": []}', "holds no answer"),
    (
        "application/json",
        None,
        json.dumps({"choices": [{"message": {}, "finish_reason": "abort"}]}).encode(),
        "broke the reply off",
    ),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("kind", "encoding", "body", "says"), ODD)
async def test_odd_replies_become_one_of_the_clients_dialect_or_an_error_that_says_why(
    tmp_path: Path, kind: str, encoding: str | None, body: bytes, says: str, stream: bool
) -> None:
    async def answer(_: web.Request) -> web.Response:
        headers = {"content-type": kind} | ({"content-encoding": encoding} if encoding else {})
        return web.Response(body=body, headers=headers)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine = UpstreamEngine(f"http://127.0.0.1:{runner.addresses[0][1]}", "m", dialects=("chat",))
    async with serving(tmp_path, engine=engine) as reef:
        reply = await reef.ask("messages", "hello", stream=stream)
        row = (await reef.settled())[0]
        good = says == "hi"
        assert row["state"] == ("complete" if good else "failed")
        assert "content-encoding" not in reply.headers
        assert says in (text_of("messages", reef.stored(row)) if good else row["error"])
        assert reply.status == (200 if good or stream else 502)
        assert ("message_stop" in kinds(reply)) is (good and stream)
    await runner.cleanup()


async def test_reasoning_that_reef_sealed_does_not_reach_a_server_of_the_clients_own_dialect(tmp_path: Path) -> None:
    def minted(messages: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return (block for block in messages["content"] if block["type"] == "thinking")

    async with serving(tmp_path, speaks=("chat",), known=False) as reef:
        first = asking("messages", CALL, ("bash",))
        reply = await send(reef, "messages", first)
        assert next(minted(reply.json))["signature"].startswith("reef:")
    second = turn_after("messages", first, reply.json, "one.txt")
    (tmp_path / "later").mkdir()
    async with serving(tmp_path / "later") as reef:
        answer = await reef.send(json.dumps(second).encode(), path=PATHS["messages"])
        assert answer.status == 200 and "x-reef-translated" not in answer.headers
        sent = json.loads(reef.seen()[0]["body"])
        assert [block["type"] for block in sent["messages"][1]["content"]] == ["tool_use"]
        row = (await reef.settled())[0]
        assert json.loads(row["notes_json"]) == {"own_reasoning_left_out": True}
        assert json.loads(reef.request_of(row) or b"") == second
