"""Model lists are answered at once, in the shape that the client reads, and never recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import Serving, serving

ANTHROPIC = {"anthropic-version": "2023-06-01"}


async def get(reef: Serving, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    async with reef.client.get(reef.url + path, headers=headers) as reply:
        return reply.status, await reply.json()


async def test_the_list_is_the_upstreams_and_anthropics_clients_find_what_they_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        status, plain = await get(reef, "/v1/models")
        assert status == 200 and set(plain) == {"object", "data"}
        status, shaped = await get(reef, "/v1/models", ANTHROPIC)
        assert (status, shaped["has_more"], shaped["first_id"], shaped["last_id"]) == (200, False, *["fake-model"] * 2)
        assert shaped["data"][0] == plain["data"][0] | {
            "type": "model",
            "display_name": "fake-model",
            "created_at": "1970-01-01T00:00:00Z",
        }
        assert reef.records() == []


async def test_an_upstream_without_a_list_is_answered_for(tmp_path: Path) -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine = UpstreamEngine(f"http://127.0.0.1:{runner.addresses[0][1]}", "mine", dialects=["chat"])
    async with serving(tmp_path, engine=engine) as reef:
        card = {"id": "mine", "object": "model", "created": 0, "owned_by": "upstream"}
        assert await get(reef, "/v1/models") == (200, {"object": "list", "data": [card]})
        assert await get(reef, "/v1/models/mine") == (200, card)
        status, shaped = await get(reef, "/v1/models/mine", ANTHROPIC)
        assert (status, shaped["id"], shaped["type"], shaped["display_name"]) == (200, "mine", "model", "mine")
        async with reef.client.get(f"{reef.url}/v1/models/other") as reply:
            assert reply.status == 404
    await runner.cleanup()


async def test_an_upstream_that_is_down_is_an_error_in_the_clients_shape(tmp_path: Path) -> None:
    async with serving(tmp_path, engine=UpstreamEngine("http://127.0.0.1:9", "m")) as reef:
        status, openai = await get(reef, "/v1/models")
        assert (status, set(openai)) == (502, {"error"})
        status, anthropic = await get(reef, "/v1/models", ANTHROPIC)
        assert (status, anthropic["type"]) == (502, "error")
