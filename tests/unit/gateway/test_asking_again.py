"""A reply that an engine broke off to load new weights is asked for again while the client has nothing of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.loading_engine import LoadingEngine
from tests.fakes.openai_server import application
from tests.unit.gateway.serving import Serving, serving

BROKEN = "the engine broke the reply off"


@asynccontextmanager
async def loading(folder: Path, **settings: Any) -> AsyncIterator[tuple[Serving, Path]]:
    """A gateway in front of an engine that loads weights; the log of the engine's server."""
    log = folder / "engine.jsonl"
    runner = web.AppRunner(application(log, None, ("chat",)), handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine = LoadingEngine(f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with serving(folder, engine=engine, **settings) as reef:
        yield reef, log
    await runner.cleanup()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
async def test_all_tries_are_one_record_with_the_last_load_id(tmp_path: Path, dialect: str, stream: bool) -> None:
    async with loading(tmp_path) as (reef, log):
        reply = await reef.ask(dialect, "hello [[abort 2]]", stream=stream)
        assert reply.status == 200 and b"abort" not in reply.body
        rows = await reef.settled()
        assert len(rows) == 1 and len(log.read_text().splitlines()) == 6
        row = rows[0]
        assert (row["state"], row["load_id"], row["trainable"]) == ("complete", "fake:3", 1)
        assert json.loads(row["attempts_json"]) == [
            {"load_id": "fake:1", "error": BROKEN},
            {"load_id": "fake:2", "error": BROKEN},
            {"load_id": "fake:3"},
        ]
        assert row["receipt"] == reply.headers["x-reef-agent-record-id"]
        assert row["answer_preview"] == "You said: hello"


@pytest.mark.parametrize("stream", [False, True])
async def test_tries_end_when_their_time_is_over(tmp_path: Path, stream: bool) -> None:
    async with loading(tmp_path, retry_timeout_s=0.3, retry_initial_s=0.05, retry_max_s=0.1) as (reef, _):
        began = time.monotonic()
        reply = await reef.ask("chat", "hello [[abort 1000]]", stream=stream)
        assert 0.15 < time.monotonic() - began < 5
        assert (reply.status, reply.headers["retry-after"], reply.json["error"]["code"]) == (503, "1", "broken_off")
        row = (await reef.settled())[0]
        attempts = json.loads(row["attempts_json"])
        assert row["state"] == "failed" and 3 <= len(attempts) <= 6
        assert [one["error"] for one in attempts] == [BROKEN] * len(attempts)
        assert row["load_id"] == attempts[-1]["load_id"] == f"fake:{len(attempts)}"


async def test_a_stream_of_which_the_client_has_a_part_is_not_asked_for_again(tmp_path: Path) -> None:
    async with loading(tmp_path) as (reef, _):
        reply = await reef.ask("chat", "[[abort 1]] [[say half of it]]", stream=True)
        assert reply.events[-1] == "[DONE]" and b'"abort"' in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["error"], row["trainable"], row["attempts_json"]) == ("failed", BROKEN, 0, None)


async def test_a_server_of_somebody_else_is_not_asked_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for stream in (False, True):
            reply = await reef.ask("chat", "hello [[abort 9]]", stream=stream)
            assert reply.status == 200 and b'"abort"' in reply.body
        rows = await reef.settled(2)
        assert [(row["state"], row["error"]) for row in rows] == [("failed", BROKEN)] * 2
        assert len(reef.seen()) == 2


async def test_a_client_that_leaves_between_two_tries_ends_them(tmp_path: Path) -> None:
    async with loading(tmp_path, retry_initial_s=0.2, retry_max_s=30) as (reef, log):
        call = asyncio.create_task(reef.ask("chat", "[[abort 1000]]"))
        await asyncio.sleep(0.4)
        call.cancel()
        row = (await reef.settled())[0]
        assert row["state"] == "cancelled"
        assert len(log.read_text().splitlines()) == 2 * len(json.loads(row["attempts_json"]))
