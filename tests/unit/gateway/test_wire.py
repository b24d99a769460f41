"""The client for plain upstreams: every legal reply cut at any place, and servers that break the rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef.engines.upstream import UpstreamEngine
from reef.gateway.reply_parser import BadReply, ReplyParser
from reef.gateway.wire import WirePool, WireReply, read_all
from tests.unit.gateway.serving import serving

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
JSON = b'{"choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}]}'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(JSON) + JSON

REPLIES = {
    "length": (b"HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    "chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n02\r\nlo\r\n0\r\nT: 1\r\n\r\n",
        b"hello",
        True,
    ),
    "close": (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
    "until the close": (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello", False),
    "older": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
    "older and kept": (b"HTTP/1.0 200\r\nConnection: Keep-Alive\r\ncontent-length: 5\r\n\r\nhello", b"hello", True),
    "no body": (b"HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n", b"", True),
    "after an interim reply": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nx: y\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"hello",
        True,
    ),
    "bare line ends": (b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", b"hello", True),
}


@given(name=st.sampled_from(sorted(REPLIES)), cuts=st.lists(st.integers(1, 160), max_size=12))
def test_every_form_of_reply_is_read_the_same_wherever_it_is_cut(name: str, cuts: list[int]) -> None:
    text, body, kept = REPLIES[name]
    parser = ReplyParser()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    found = b"".join(b"".join(parser.feed(text[a:b])) for a, b in pairwise(places))
    assert parser.head is not None and found == body
    assert parser.close_ends() is (name == "until the close")
    assert parser.done and parser.kept is kept


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n name: v\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_reply_is_refused(text: bytes) -> None:
    with pytest.raises(BadReply):
        ReplyParser().feed(text)


def test_bytes_behind_the_end_are_no_part_of_the_body_and_spoil_the_connection() -> None:
    for text in (REPLIES["length"][0], REPLIES["chunks"][0]):
        parser = ReplyParser()
        assert b"".join(parser.feed(text + b"HTTP/1.1 200 OK\r\n")) == b"hello"
        assert parser.done and not parser.kept


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[str]:
    """A server of raw bytes; yields its address."""
    tasks: set[asyncio.Task[None]] = set()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            tasks.discard(task)

    listening = await asyncio.start_server(run, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    listening.close()
    for task in list(tasks):
        task.cancel()


async def request(reader: asyncio.StreamReader) -> bytes:
    """One whole request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def test_a_kept_connection_that_died_is_replaced_once_and_noted(tmp_path: Path) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await request(reader)
        writer.write(OK)
        if connections == 1:
            # The next call is sent before the close can be seen; it dies without a byte of a reply.
            await request(reader)
        else:
            await request(reader)
            writer.write(OK)

    async with server(serve) as url, serving(tmp_path, engine=UpstreamEngine(url, "m")) as reef:
        for words in ("one", "two", "three"):
            assert (await reef.chat(words)).status == 200
        rows = await reef.settled(3)
        assert [row["attempts_json"] and len(json.loads(row["attempts_json"])) for row in rows] == [None, 2, None]
        assert connections == 2


async def test_a_fresh_connection_that_dies_is_not_tried_again(tmp_path: Path) -> None:
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        await request(reader)
        seen += 1

    async with server(serve) as url, serving(tmp_path, engine=UpstreamEngine(url, "m")) as reef:
        reply = await reef.chat("one")
        assert (reply.status, seen) == (502, 1)
        assert "without an answer" in reply.json["error"]["message"]


async def test_a_server_that_speaks_something_else_gives_502(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await request(reader)

    async with server(serve) as url, serving(tmp_path, engine=UpstreamEngine(url, "m")) as reef:
        assert (await reef.chat("one")).status == 502
        assert (await reef.settled())[0]["state"] == "failed"


async def test_an_answer_before_the_request_is_whole_is_delivered(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"error":{"message":"too large"}}'
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        await asyncio.sleep(5)

    async with server(serve) as url, serving(tmp_path, engine=UpstreamEngine(url, "m")) as reef:
        reply = await reef.chat("x" * 30_000_000)
        assert (reply.status, reply.json["error"]["message"]) == (413, "too large")


async def test_a_slow_reader_makes_the_upstream_wait(tmp_path: Path) -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
        for _ in range(50):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
            sent += 1_000_000

    async with server(serve) as url:
        pool = WirePool(5, 5, 5)
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        wire = await pool.take(address)
        reply = WireReply(pool, address, wire, await wire.send(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b""))
        await asyncio.sleep(0.5)
        assert sent < 20_000_000
        assert len(await read_all(reply)) == 50_000_000
        reply.release()
        pool.close()


async def test_silence_in_the_middle_of_a_body_times_out(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
        await asyncio.sleep(10)

    async with server(serve) as url:
        pool = WirePool(5, 0.3, 5)
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        wire = await pool.take(address)
        reply = WireReply(pool, address, wire, await wire.send(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b""))
        assert await reply.readany() == b"hello"
        with pytest.raises(aiohttp.SocketTimeoutError):
            await reply.readany()
        reply.release()
        assert not wire.usable
        pool.close()


async def test_connections_are_kept_for_a_while_and_then_closed(tmp_path: Path) -> None:
    ended: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls = 0
        try:
            while True:
                await request(reader)
                calls += 1
                writer.write(OK)
        finally:
            ended.append(calls)

    async with server(serve) as url:
        pool = WirePool(5, 5, 0.2)
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(3):
            wire = await pool.take(address)
            reply = WireReply(
                pool, address, wire, await wire.send(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b"")
            )
            assert await read_all(reply) == JSON
            reply.release()
        assert ended == []
        await asyncio.sleep(0.6)
        assert ended == [3]
        pool.close()
