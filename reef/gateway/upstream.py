"""Calls to engines over one pool of connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from reef.engines.engine import CHAT, Engine
from reef.engines.upstream import why
from reef.gateway.dialect import Problem
from reef.gateway.headers import forwarded
from reef.gateway.sending import Sending, address
from reef.gateway.wire import Connections, Reply

LIST_TIMEOUT_S = 10.0
AT_ONCE_S = 1.0
"""A connection that breaks this soon was dead before; one that breaks later had a server at work on the call."""


class UpstreamCalls:
    """The connections of one gateway. Nothing is retried but a request that met a connection already dead."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._kept: Connections | None = None
        self._fresh: Connections | None = None

    async def post(self, engine: Engine, sending: Sending, attempts: list[dict[str, Any]]) -> Reply:
        """Send a call and return when the reply's headers have come.

        A kept connection may have died unseen: when it breaks at once and without a byte of a reply, the call is sent
        once more over a fresh one, noted in `attempts`. Raises aiohttp.ClientError, TimeoutError or OSError.
        """
        sent = time.monotonic()
        try:
            return await self._send(engine, sending)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) or time.monotonic() - sent > AT_ONCE_S:
                raise
            attempts.append({"error": why(error), "connection": "kept"})
        attempts.append({"connection": "fresh"})
        return await self._send(engine, sending, fresh=True)

    @asynccontextmanager
    async def get(self, engine: Engine, route: str, request: web.Request, dialect: str = CHAT) -> AsyncIterator[Reply]:
        """A small request whose reply is read whole, in ten seconds. Raises like `post`."""
        url = address(engine.url(route, request.rel_url.raw_query_string))
        found = forwarded(request.headers, engine.headers(dialect))
        async with asyncio.timeout(LIST_TIMEOUT_S):
            async with await self._connections().send("GET", url, found, proxy=engine.proxy) as reply:
                yield reply

    def problem(self, engine: Engine, error: BaseException) -> Problem:
        """A connection failure as an error for the client, in words without keys; the engine is told as well."""
        reason = why(error)
        engine.observed(f"it cannot be reached: {reason}")
        timed_out = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
        message = f"the model server at {engine.base_url} cannot be reached: {reason}"
        return Problem(504 if timed_out else 502, message, "api_error", "upstream_unreachable")

    async def close(self) -> None:
        """Close every connection."""
        for connections in (self._kept, self._fresh):
            if connections is not None:
                await connections.close()

    async def _send(self, engine: Engine, sending: Sending, fresh: bool = False) -> Reply:
        return await self._connections(fresh).send("POST", sending.url, sending.headers, sending.body, engine.proxy)

    def _connections(self, fresh: bool = False) -> Connections:
        """Those that are kept, or those of one call each; made when the first call needs them."""
        if fresh:
            if self._fresh is None:
                self._fresh = Connections(self._connect_timeout_s, self._read_timeout_s, kept=False)
            return self._fresh
        if self._kept is None:
            self._kept = Connections(self._connect_timeout_s, self._read_timeout_s, kept=True)
        return self._kept
