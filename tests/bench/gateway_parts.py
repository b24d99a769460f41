"""The processes of the gateway's bench: a stub that answers at once, and the floor, a bare relay with one durable row.

`python -m tests.bench.gateway_parts stub` and `… floor UPSTREAM DATABASE` print `listening http://127.0.0.1:PORT`.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import sys
import threading
from typing import Any

import aiohttp
from aiohttp import web

EVENTS = 100
GAP_S = 0.005
_TEXT = "the quick brown fox " * 30
REPLY = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"' + _TEXT.encode() + b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,'
    b'"completion_tokens":200,"total_tokens":1100,"prompt_tokens_details":{"cached_tokens":0}}}'
)
EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
)
LAST = EVENT.replace(b'{"content":"word "}', b"{}").replace(b"null}", b'"stop"}') + b"data: [DONE]\n\n"


class Stub(asyncio.Protocol):
    """Answers every request with the same bytes; streams `EVENTS` events, `GAP_S` apart, when asked to."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(body) < length:
            return
        self.data = b""
        if b'"stream":true' in body[:200]:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            self._tick(0)
        else:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY) + REPLY
            )

    def _tick(self, number: int) -> None:
        if self.transport.is_closing():
            return
        if number == EVENTS:
            self.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(LAST), LAST))
            return
        self.transport.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
        asyncio.get_running_loop().call_later(GAP_S, self._tick, number + 1)


async def run_stub() -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    say(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


class Log:
    """One durable row a call: a thread that commits what is waiting as one group."""

    def __init__(self, path: str) -> None:
        self.queue: queue.SimpleQueue[tuple[Any, asyncio.Future[None]]] = queue.SimpleQueue()
        self.path = path
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, status INTEGER, request BLOB, response BLOB)")
        while True:
            group = [self.queue.get()]
            while not self.queue.empty():
                group.append(self.queue.get())
            connection.execute("BEGIN IMMEDIATE")
            for row, _ in group:
                connection.execute("INSERT INTO calls (status, request, response) VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")
            group[0][1].get_loop().call_soon_threadsafe(_resolve, [future for _, future in group])

    async def write(self, *row: Any) -> None:
        """Wait until the row is on disk."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queue.put((row, future))
        await future


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


async def run_floor(upstream: str, database: str) -> None:
    """A relay of a few dozen lines: every byte passed on and logged, the end held back until the row is durable."""
    log = Log(database)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        passed = {
            name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length")
        }
        async with session.post(f"{upstream}/v1/chat/completions", data=body, headers=passed) as reply:
            kept = {"content-type": reply.headers["content-type"]}
            if reply.content_length is not None:
                answer = await reply.read()
                await log.write(reply.status, body, answer)
                return web.Response(status=reply.status, body=answer, headers=kept)
            response = web.StreamResponse(status=reply.status, headers=kept)
            await response.prepare(request)
            pieces = []
            async for piece in reply.content.iter_any():
                pieces.append(piece)
                await response.write(piece)
            await log.write(reply.status, body, b"".join(pieces))
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    say(runner.addresses[0][1])
    await asyncio.Event().wait()


def say(port: int) -> None:
    """Tell the bench where this process listens."""
    print(f"listening http://127.0.0.1:{port}", flush=True)


if __name__ == "__main__":
    asyncio.run(run_stub() if sys.argv[1] == "stub" else run_floor(sys.argv[2], sys.argv[3]))
