"""Which dialects a server speaks is asked once, without making it generate anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from reef.config import InferenceSection, Settings
from reef.engines.discovery import build, build_multimodal
from reef.engines.upstream import UpstreamEngine
from reef.errors import ConfigError
from reef.paths import Paths
from tests.fakes.openai_server import application


@asynccontextmanager
async def server(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """Serve `app` on a port of the system's choice, or on this one."""
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answering(statuses: dict[str, int]) -> web.Application:
    """A server that answers each route with a status, whatever it is asked."""
    app = web.Application()

    def route(status: int) -> Any:
        async def handle(_: web.Request) -> web.Response:
            return web.json_response({"error": "no"}, status=status)

        return handle

    for path, status in statuses.items():
        app.router.add_post(f"/v1{path}", route(status))
    return app


@pytest.mark.parametrize("spoken", [("chat",), ("messages",), ("chat", "responses"), ("chat", "responses", "messages")])
async def test_a_server_is_asked_once_whatever_many_calls_want_to_know(tmp_path: Path, spoken: Collection[str]) -> None:
    log = tmp_path / "log"
    async with server(application(log, dialects=spoken)) as address:
        engine = UpstreamEngine(address)
        assert engine.describe()["dialects"] == ["chat"]
        answers = await asyncio.gather(*(engine.find_dialects() for _ in range(20)))
        assert set(answers) == {frozenset(spoken)}
        assert await engine.find_dialects() == frozenset(spoken)
        assert engine.describe()["dialects"] == sorted(spoken)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert sorted(line["event"] for line in lines) == ["probe"] * len(spoken)


async def test_a_refusal_of_the_body_or_of_the_caller_means_that_the_route_is_there() -> None:
    for status in (400, 401, 403, 415, 422, 500):
        async with server(answering({"/messages": status, "/responses": 405})) as address:
            assert await UpstreamEngine(address).find_dialects() == {"messages"}, status


async def test_what_says_nothing_for_sure_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    for app in (answering({"/messages": 503, "/chat/completions": 400}), answering({})):
        async with server(app) as address:
            engine = UpstreamEngine(address)
            assert await engine.find_dialects() is None
            assert engine.describe()["dialects"] == ["chat"]
    async with server(application(dialects=("messages",))) as address:
        pass
    engine = UpstreamEngine(address)
    assert await engine.find_dialects() is None
    async with server(application(dialects=("messages",)), int(address.rpartition(":")[2])):
        assert await engine.find_dialects() is None
        monkeypatch.setattr("reef.engines.upstream.ASK_AGAIN_S", 0.0)
        assert await engine.find_dialects() == {"messages"}


async def test_a_caller_that_leaves_does_not_end_the_question() -> None:
    async with server(application()) as address:
        engine = UpstreamEngine(address)
        leaving = asyncio.create_task(engine.find_dialects())
        await asyncio.sleep(0)
        leaving.cancel()
        assert await engine.find_dialects() == {"chat", "responses", "messages"}


def test_the_key_goes_out_in_the_form_that_the_dialect_uses() -> None:
    engine = UpstreamEngine("http://127.0.0.1:9", key="k")
    assert engine.headers() == engine.headers("responses") == {"authorization": "Bearer k"}
    assert engine.headers("messages") == {"authorization": "Bearer k", "x-api-key": "k"}
    vendor = UpstreamEngine("https://api.anthropic.com", key="k")
    assert vendor.headers("messages") == {"x-api-key": "k"}
    assert UpstreamEngine("http://127.0.0.1:9").headers("messages") == {}


async def test_a_setting_says_what_an_upstream_speaks_instead_of_a_question(paths: Paths) -> None:
    for api, spoken in (("openai", "chat"), ("responses", "responses"), ("anthropic", "messages")):
        inference = InferenceSection(upstream_url="http://127.0.0.1:9", upstream_api=api)  # type: ignore[arg-type]
        engine = build(Settings(inference=inference), paths)
        assert await engine.find_dialects() == {spoken}


def test_the_multimodal_address_has_a_key_of_its_own() -> None:
    assert build_multimodal(Settings()) is None
    inference = InferenceSection(multimodal_url="http://127.0.0.1:7/x", multimodal_api_key="mk")  # type: ignore[arg-type]
    engine = build_multimodal(Settings(inference=inference))
    assert engine is not None
    assert (engine.url("/embeddings"), engine.headers()) == (
        "http://127.0.0.1:7/x/v1/embeddings",
        {"authorization": "Bearer mk"},
    )
    with pytest.raises(ConfigError, match=r"inference\.multimodal-url"):
        build_multimodal(Settings(inference=InferenceSection(multimodal_url="nowhere")))
