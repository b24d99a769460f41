"""A kept connection that died unseen costs nothing: the call goes out once more over a fresh one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import DIALECTS, serving

REPLY = b'{"choices":[],"output":[],"content":[]}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_second_call_succeeds_with_one_receipt(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        assert (await reef.ask(dialect, "one [[close]]")).status == 200
        await asyncio.sleep(0.2)
        assert (await reef.ask(dialect, "two")).status == 200
        rows = await reef.settled(2)
        assert [row["state"] for row in rows] == ["complete", "complete"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_connection_that_dies_under_the_request_is_replaced_once_and_noted(
    tmp_path: Path, dialect: str
) -> None:
    taken: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The first connection answers one call and dies when the second comes; later ones answer."""
        taken.append(0)
        first = len(taken) == 1
        while line := await reader.readline():
            length = 0
            while line.strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                line = await reader.readline()
            await reader.readexactly(length)
            taken[-1] += 1
            if first and taken[0] == 2:
                break
            writer.write(HEAD + REPLY)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with serving(tmp_path, engine=UpstreamEngine(address, "m", dialects=DIALECTS)) as reef:
        assert (await reef.ask(dialect, "one")).status == 200
        assert (await reef.ask(dialect, "two")).status == 200
        rows = await reef.settled(2)
        assert len(rows) == 2
        assert [attempt["connection"] for attempt in json.loads(rows[1]["attempts_json"])] == ["kept", "fresh"]
    server.close()
