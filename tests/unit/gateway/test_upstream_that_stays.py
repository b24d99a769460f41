"""An upstream that has said the end of a translated stream and keeps its connection all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from reef.engines.upstream import UpstreamEngine
from tests.fakes.raw_server import DONE, chunk
from tests.unit.gateway.serving import PATHS, serving

CHAT_HI = chunk({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
MESSAGES_HI = b"".join(
    chunk(event)
    for event in (
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
)
RESPONSE = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
}
RESPONSES_HI = chunk({"type": "response.completed", "response": RESPONSE})
CASES = [
    ("messages", "chat", CHAT_HI + DONE, "complete"),
    ("chat", "messages", MESSAGES_HI, "complete"),
    ("messages", "responses", RESPONSES_HI, "complete"),
    ("messages", "chat", CHAT_HI + chunk({"error": {"message": "no luck"}}), "failed"),
]


@asynccontextmanager
async def staying(dialect: str, said: bytes, left: asyncio.Event) -> AsyncIterator[UpstreamEngine]:
    """An engine that says `said` and then nothing until it is left."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(said)
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return response

    app = web.Application()
    app.router.add_post(PATHS[dialect], answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield UpstreamEngine(f"http://127.0.0.1:{runner.addresses[0][1]}", "m", dialects=(dialect,))
    await runner.cleanup()


@pytest.mark.parametrize(("client", "upstream", "said", "state"), CASES)
async def test_a_translated_stream_ends_with_the_end_that_the_upstream_says_though_its_connection_stays_open(
    tmp_path: Path, client: str, upstream: str, said: bytes, state: str
) -> None:
    left = asyncio.Event()
    async with staying(upstream, said, left) as engine, serving(tmp_path, engine=engine) as reef:
        async with asyncio.timeout(3):
            reply = await reef.ask(client, "hello", stream=True)
            await left.wait()
        assert not reply.broken and b"hi" in reply.body
        assert (await reef.settled())[0]["state"] == state
        assert reply.headers["x-reef-agent-record-id"].encode() in reply.body


async def test_the_connection_of_a_translated_stream_that_ends_at_once_is_used_again(tmp_path: Path) -> None:
    ports: set[int] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(CHAT_HI + DONE)
        # The chunk that ends the body comes by itself.
        await asyncio.sleep(0.02)
        return response

    app = web.Application()
    app.router.add_post(PATHS["chat"], answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine = UpstreamEngine(f"http://127.0.0.1:{runner.addresses[0][1]}", "m", dialects=("chat",))
    async with serving(tmp_path, engine=engine) as reef:
        for _ in range(3):
            assert b"message_stop" in (await reef.ask("messages", "hello", stream=True)).body
        assert len(ports) == 1
    await runner.cleanup()
