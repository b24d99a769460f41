"""Embeddings, speech and decisions go through unchanged and leave no record; 501 where nobody has the route."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import aiohttp
from aiohttp import web

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import serving


async def test_the_bytes_of_both_sides_are_unchanged_and_nothing_is_recorded(tmp_path: Path) -> None:
    body = b'{ "input" : ["a"],\t"x":1.50 }'
    async with serving(tmp_path, more=("/embeddings", "/audio/speech")) as reef:
        for route in ("embeddings", "audio/speech"):
            reply = await reef.send(body, query="?a=%2F", path=f"/v1/{route}")
            assert (reply.status, reply.headers["content-type"], reply.body) == (200, "audio/mpeg", b"\x00\xff" + body)
            assert not any(name.startswith("x-reef") for name in reply.headers)
            seen = reef.seen()[-1]
            assert (seen["path"], seen["body"].encode()) == (f"/v1/{route}?a=%2F", body)
            assert seen["headers"]["authorization"] == "Bearer sk-upstream"
        assert reef.records() == [] and reef.gateway.unrecorded == 0


async def test_without_the_route_it_is_501_with_what_to_do(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for route in ("embeddings", "decisions"):
            reply = await reef.send(b"{}", path=f"/v1/{route}")
            assert reply.status == 501
            assert "--inference.multimodal-url" in reply.json["error"]["message"]
            assert reply.json["error"]["code"] == "not_supported"


async def test_a_model_that_is_missing_is_not_a_route_that_is(tmp_path: Path) -> None:
    async with serving(tmp_path, more=("/embeddings",)) as reef:
        reply = await reef.send(b'{"model":"missing"}', path="/v1/embeddings")
        assert (reply.status, reply.json["error"]["message"]) == (404, "the model `missing` does not exist")


async def test_a_client_that_leaves_ends_the_upstreams_work(tmp_path: Path) -> None:
    async with serving(tmp_path, more=("/embeddings",)) as reef:
        async with aiohttp.ClientSession() as leaving:
            call = asyncio.create_task(leaving.post(f"{reef.url}/v1/embeddings", data=json.dumps({"slow": 20})))
            await asyncio.sleep(0.5)
            call.cancel()
        left = time.monotonic()
        while not reef.seen("end"):
            assert time.monotonic() - left < 2
            await asyncio.sleep(0.02)
        assert reef.seen("end")[0]["how"] == "client gone"
        assert reef.gateway.running == 0


async def test_a_stopping_gateway_takes_none_and_cuts_those_that_run(tmp_path: Path) -> None:
    async with serving(tmp_path, more=("/embeddings",)) as reef:
        call = asyncio.create_task(reef.send(b'{"slow": 20}', path="/v1/embeddings"))
        await asyncio.sleep(0.3)
        await reef.gateway.drain(0.1)
        assert (await call).status == 503
        assert (await reef.send(b"{}", path="/v1/embeddings")).status == 503


async def test_a_reply_that_a_stop_cuts_breaks_off_and_no_error_stands_in_its_middle(tmp_path: Path) -> None:
    async def speak(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"content-type": "audio/mpeg"})
        await reply.prepare(request)
        await reply.write(b"voice")
        await asyncio.sleep(20)
        return reply

    app = web.Application()
    app.router.add_post("/v1/audio/speech", speak)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine = UpstreamEngine(f"http://127.0.0.1:{runner.addresses[0][1]}", "m")
    async with serving(tmp_path, engine=engine) as reef:
        call = asyncio.create_task(reef.send(b"{}", path="/v1/audio/speech"))
        await asyncio.sleep(0.3)
        await reef.gateway.drain(0.1)
        reply = await call
        assert (reply.status, reply.body, reply.broken) == (200, b"voice", True)
        assert reef.gateway.running == 0
    await runner.cleanup()
