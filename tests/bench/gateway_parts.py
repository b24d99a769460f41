"""The floor of the gateway's bench: a bare relay that logs what it relays and waits for one durable row a call.

`python -m tests.bench.gateway_parts UPSTREAM DATABASE JOURNAL SYNCHRONOUS` prints `listening http://127.0.0.1:PORT`.
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


class Log:
    """One durable row a call: a thread that commits what is waiting as one group."""

    def __init__(self, path: str, journal: str, synchronous: str) -> None:
        self.queue: queue.SimpleQueue[tuple[Any, asyncio.Future[None]]] = queue.SimpleQueue()
        self.path = path
        self.settings = {"journal_mode": journal, "synchronous": synchronous}
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        for name, value in self.settings.items():
            connection.execute(f"PRAGMA {name}={value}")
        columns = "id INTEGER PRIMARY KEY, status INTEGER, streaming INTEGER, request BLOB, response BLOB"
        connection.execute(f"CREATE TABLE calls ({columns})")
        while True:
            group = [self.queue.get()]
            while not self.queue.empty():
                group.append(self.queue.get())
            connection.execute("BEGIN IMMEDIATE")
            for row, _ in group:
                connection.execute("INSERT INTO calls (status, streaming, request, response) VALUES (?, ?, ?, ?)", row)
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


async def run_floor(upstream: str, log: Log) -> None:
    """A relay of a few dozen lines: every byte passed on and logged, the end held back until the row is durable."""
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
                await log.write(reply.status, 0, body, answer)
                return web.Response(status=reply.status, body=answer, headers=kept)
            response = web.StreamResponse(status=reply.status, headers=kept)
            await response.prepare(request)
            pieces = []
            async for piece in reply.content.iter_any():
                pieces.append(piece)
                await response.write(piece)
            await log.write(reply.status, 1, body, b"".join(pieces))
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(run_floor(sys.argv[1], Log(*sys.argv[2:5])))
