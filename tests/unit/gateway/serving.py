"""A gateway of this process on a real port, with the scripted model server behind it."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yarl
from aiohttp import web

from reef.config import InferenceSection, RecordsSection, Settings
from reef.engines.engine import Engine
from reef.engines.upstream import UpstreamEngine
from reef.gateway.call import Call
from reef.gateway.dialect import Dialect
from reef.gateway.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT, TOKEN_COUNT_DIALECT
from reef.gateway.relay import Gateway
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.fakes.openai_server import application

CALL = Call("default", release_id="a" * 40)
DIALECTS = ("chat", "responses", "messages")
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "count": "/v1/messages/count_tokens",
}
_SERVED: dict[str, Dialect] = {
    "chat": CHAT_DIALECT,
    "responses": RESPONSES_DIALECT,
    "messages": MESSAGES_DIALECT,
    "count": TOKEN_COUNT_DIALECT,
}


def asking(dialect: str, words: str, tools: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A request with one user message, offering tools of these names."""
    turn = [{"role": "user", "content": words}]
    if dialect == "responses":
        offered: list[Any] = [{"type": "function", "name": name, "parameters": {}} for name in tools]
        body: dict[str, Any] = {"model": "m", "input": turn}
    elif dialect == "chat":
        offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
        body = {"model": "m", "messages": turn}
    else:
        offered = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
        body = {"model": "m", "messages": turn, **({} if dialect == "count" else {"max_tokens": 1000})}
    return {**body, **({"tools": offered} if offered else {}), **more}


@dataclass
class Serving:
    """What a test talks to."""

    url: str
    gateway: Gateway
    writer: Writer
    engine: Engine
    log: Path
    client: aiohttp.ClientSession
    settings: Settings
    call: Call = field(default=CALL)

    async def chat(self, words: str, headers: dict[str, str] | None = None, **body: Any) -> Reply:
        """Make one call and read its reply to the end."""
        whole = {"model": "m", "messages": [{"role": "user", "content": words}], **body}
        return await self.send(json.dumps(whole).encode(), headers)

    async def ask(
        self,
        dialect: str,
        words: str,
        headers: dict[str, str] | None = None,
        query: str = "",
        tools: Sequence[str] = (),
        **more: Any,
    ) -> Reply:
        """Make one call in a dialect (`chat`, `responses`, `messages`, `count`) and read its reply to the end."""
        body = json.dumps(asking(dialect, words, tools, **more)).encode()
        return await self.send(body, headers, query, PATHS[dialect])

    async def send(
        self, body: bytes, headers: dict[str, str] | None = None, query: str = "", path: str = PATHS["chat"]
    ) -> Reply:
        """Send exact bytes."""
        found = {"content-type": "application/json", **(headers or {})}
        target = yarl.URL(f"{self.url}{path}{query}", encoded=True)
        data = io.BytesIO(body) if len(body) > 1 << 20 else body
        async with self.client.post(target, data=data, headers=found) as reply:
            received = b""
            broken = False
            try:
                async for piece in reply.content.iter_any():
                    received += piece
            except aiohttp.ClientPayloadError:
                broken = True
            return Reply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, received, broken)

    def seen(self, event: str = "request") -> list[dict[str, Any]]:
        """What the model server has logged."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def records(self) -> list[dict[str, Any]]:
        """Every row of `records`, oldest first; the receipt as `receipt`."""
        with sqlite3.connect(f"file:{self.writer.path}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            rows = [dict(row) for row in connection.execute("SELECT * FROM records ORDER BY sequence")]
        return [{**row, "receipt": row["id"].hex()} for row in rows]

    def request_of(self, row: dict[str, Any]) -> bytes | None:
        """The stored request of a record."""
        return self._read(lambda reader: reader.request_bytes(row["receipt"]))

    def response_of(self, row: dict[str, Any]) -> bytes | None:
        """The stored reply of a record."""
        return self._read(lambda reader: reader.response_bytes(row["receipt"]))

    def stored(self, row: dict[str, Any]) -> dict[str, Any]:
        """The stored reply of a record, parsed."""
        found = json.loads(self.response_of(row) or b"")
        assert isinstance(found, dict)
        return found

    def message_of(self, row: dict[str, Any]) -> dict[str, Any]:
        """The assistant's message in the stored reply."""
        found = json.loads(self.response_of(row) or b"")["choices"][0]["message"]
        assert isinstance(found, dict)
        return found

    def _read(self, ask: Callable[[Reader], bytes | None]) -> bytes | None:
        reader = Reader(self.writer.path)
        try:
            return ask(reader)
        finally:
            reader.close()

    async def settled(self, count: int = 1, seconds: float = 5) -> list[dict[str, Any]]:
        """Wait until `count` records have an end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rows = self.records()
            if sum(row["state"] != "open" for row in rows) >= count:
                return rows
            await asyncio.sleep(0.02)
        raise AssertionError(f"not settled: {[(row['state'], row['error']) for row in self.records()]}")


@dataclass
class Reply:
    """One reply as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    broken: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Data of a plainly framed stream, parsed; `[DONE]` as itself."""
        found = []
        for block in self.body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
            data = "\n".join(line[5:].lstrip() for line in block.split("\n") if line.startswith("data:"))
            if data:
                found.append(data if data == "[DONE]" else json.loads(data))
        return found


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    engine: Engine | None = None,
    writer: Writer | None = None,
    speaks: Collection[str] = DIALECTS,
    known: bool = True,
    more: Collection[str] = ("/messages/count_tokens",),
    **inference: Any,
) -> AsyncIterator[Serving]:
    """Start both servers; `inference` are settings of that section.

    The model server `speaks` these dialects and has `more` routes; `known`: the engine need not ask for them.
    """
    log = folder / "upstream.jsonl"
    upstream = web.AppRunner(
        application(log, None, speaks, more), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
    )
    await upstream.setup()
    await web.TCPSite(upstream, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{upstream.addresses[0][1]}"
    records = inference.pop("records", {})
    settings = Settings(inference=InferenceSection(**inference), records=RecordsSection(**records))
    spoken = DIALECTS if known else None
    chosen = engine or UpstreamEngine(address, "default-model", "sk-upstream", dialects=spoken)
    store = writer or Writer(folder / "reef.db")
    gateway = Gateway(store, settings)
    found: list[Serving] = []

    def serve(dialect: Dialect) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await gateway.relay(request, found[0].call, chosen, dialect)

        return handle

    async def models(request: web.Request) -> web.StreamResponse:
        return await gateway.models(request, chosen, request.match_info.get("name"))

    async def unrecorded(request: web.Request) -> web.StreamResponse:
        return await gateway.unrecorded_relay(request, chosen, "/" + request.match_info["route"])

    app = web.Application(client_max_size=64 * 1024 * 1024)
    for name, path in PATHS.items():
        app.router.add_post(path, serve(_SERVED[name]))
    app.router.add_get("/v1/models", models)
    app.router.add_get("/v1/models/{name}", models)
    app.router.add_post("/v1/{route:embeddings|audio/speech|decisions}", unrecorded)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client = aiohttp.ClientSession(auto_decompress=False)
    found.append(Serving(url, gateway, store, chosen, log, client, settings))
    try:
        yield found[0]
    finally:
        await client.close()
        await gateway.close()
        await runner.cleanup()
        await upstream.cleanup()
        await asyncio.to_thread(store.close)
