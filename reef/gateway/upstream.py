"""Calls to engines over one pool of connections."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import yarl
from aiohttp import web

from reef.engines.engine import CHAT, Engine
from reef.engines.upstream import why
from reef.gateway.bodies import outgoing
from reef.gateway.dialect import Problem
from reef.gateway.headers import forwarded
from reef.gateway.sending import Sending

KEPT_ALIVE_S = 15.0
LIST_TIMEOUT_S = 10.0
AT_ONCE_S = 1.0
"""A connection that breaks this soon was dead before; one that breaks later had a server at work on the call."""


class UpstreamCalls:
    """The connections of one gateway. Nothing is retried but a request that met a connection already dead."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def post(self, engine: Engine, sending: Sending, attempts: list[dict[str, Any]]) -> aiohttp.ClientResponse:
        """Send a call and return when the reply's headers have come.

        A kept connection may have died unseen: when it breaks at once and without a byte of a reply, the call is sent
        once more over a fresh one, noted in `attempts`. Raises aiohttp.ClientError, TimeoutError or OSError.
        """
        sent = time.monotonic()
        try:
            return await self._send(self._session(), engine, sending)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) or time.monotonic() - sent > AT_ONCE_S:
                raise
            attempts.append({"error": why(error), "connection": "kept"})
        attempts.append({"connection": "fresh"})
        return await self._send(self._session(fresh=True), engine, sending)

    def get(
        self, engine: Engine, route: str, request: web.Request, dialect: str = CHAT
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """A small request whose reply is read whole."""
        url = yarl.URL(engine.url(route, request.rel_url.raw_query_string), encoded=True)
        return self._session().get(
            url,
            headers=forwarded(request.headers, engine.headers(dialect)),
            proxy=engine.proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=LIST_TIMEOUT_S),
        )

    def problem(self, engine: Engine, error: BaseException) -> Problem:
        """A connection failure as an error for the client, in words without keys; the engine is told as well."""
        reason = why(error)
        engine.observed(f"it cannot be reached: {reason}")
        timed_out = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
        message = f"the model server at {engine.base_url} cannot be reached: {reason}"
        return Problem(504 if timed_out else 502, message, "api_error", "upstream_unreachable")

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def _send(self, session: aiohttp.ClientSession, engine: Engine, sending: Sending) -> aiohttp.ClientResponse:
        return await session.post(
            sending.url,
            data=outgoing(sending.body),
            headers=sending.headers,
            proxy=engine.proxy,
            allow_redirects=False,
        )

    def _session(self, fresh: bool = False) -> aiohttp.ClientSession:
        found = self._fresh if fresh else self._kept
        if found is None:
            found = self._make(fresh)
            if fresh:
                self._fresh = found
            else:
                self._kept = found
        return found

    def _make(self, fresh: bool) -> aiohttp.ClientSession:
        connector = (
            aiohttp.TCPConnector(limit=0, force_close=True)
            if fresh
            else aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S)
        )
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._connect_timeout_s, sock_read=self._read_timeout_s
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent", "accept", "content-type"),
        )
