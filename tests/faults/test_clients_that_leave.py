"""When the client has gone, the upstream stops within two seconds, on every route and at every moment."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from tests.http.running import Home, chat, wait_for
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


def test_a_client_that_leaves_in_its_own_request_or_in_a_stream_of_events_is_no_failure_of_reefs(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    port = int(home.url.rpartition(":")[2])
    head = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
    for path in ("/v1/chat/completions", "/v1/messages", "/reef/report"):
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(f"POST {path} HTTP/1.1\r\n{head}".encode() + b'{"messages": ')
            time.sleep(0.1)
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"GET /reef/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {home.key}\r\n\r\n".encode())
        assert b"200 OK" in line.recv(4096)
    for _ in range(3):
        # Each is an event that nobody reads any more.
        assert chat(home.nobody, "hello").status_code == 200
        time.sleep(0.1)
    assert wait_for(lambda: home.person.post("/reef/stop", json={}).json()["running_calls"] == 0)
    assert home.process is not None and home.process.wait(20) == 0
    log = home.paths.daemon_log.read_text()
    assert "Traceback" not in log and "ERROR" not in log
