"""When the client has gone, the upstream stops within two seconds, on every route and at every moment."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp
import pytest

from tests.unit.gateway.serving import DIALECTS, PATHS, Serving, asking, serving

WINDOWS = [("[[slow 20s]]", False), ("[[slow 20s]]", True), ("[[slow first 20s]]", True), ("[[paced 200 100ms]]", True)]


@pytest.mark.parametrize(("words", "stream"), WINDOWS, ids=["one body", "before headers", "before token", "mid stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_upstream_sees_the_close_within_two_seconds(
    tmp_path: Path, dialect: str, words: str, stream: bool
) -> None:
    async with serving(tmp_path) as reef:
        async with aiohttp.ClientSession() as leaving:
            call = asyncio.create_task(_read(leaving, reef, dialect, words, stream))
            await asyncio.sleep(1)
            call.cancel()
        left = time.monotonic()
        while not reef.seen("end"):
            assert time.monotonic() - left < 2, "the upstream still works"
            await asyncio.sleep(0.02)
        assert reef.seen("end")[0]["how"] == "client gone"
        row = (await reef.settled())[0]
        assert (row["state"], row["error"], row["trainable"]) == ("cancelled", "the client closed the connection", 0)
        assert (row["answer_preview"] or "").startswith("word0") is words.startswith("[[paced")
        assert (await reef.ask(dialect, "next")).status == 200


async def _read(client: aiohttp.ClientSession, reef: Serving, dialect: str, words: str, stream: bool) -> None:
    async with client.post(reef.url + PATHS[dialect], json=asking(dialect, words, stream=stream)) as reply:
        async for _ in reply.content.iter_any():
            continue
