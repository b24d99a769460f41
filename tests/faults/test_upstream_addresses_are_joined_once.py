"""However an upstream's address is written, every route is joined to it once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import DIALECTS, PATHS, serving

ENDINGS = ("", "/", "/v1", "/v1/", "/v1/v1", "/v1/chat/completions", "/v1/responses", "/v1/messages")


@pytest.mark.parametrize("dialect", [*DIALECTS, "count"])
async def test_every_way_to_write_the_address_reaches_the_route(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as other:
        place = other.engine.base_url.removesuffix("/v1")
        for number, ending in enumerate((*ENDINGS, "/v1/messages/count_tokens", "/gw/v1")):
            folder = tmp_path / str(number)
            folder.mkdir()
            engine = UpstreamEngine(place + ending, "m", dialects=DIALECTS)
            async with serving(folder, engine=engine) as reef:
                assert (await reef.ask(dialect, "hello")).status == 200
            prefix = "/gw" if ending.startswith("/gw") else ""
            assert other.seen()[-1]["path"] == prefix + PATHS[dialect]
