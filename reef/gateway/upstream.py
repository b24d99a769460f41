"""Calls to engines: straight over `reef.gateway.wire` where that is possible, through aiohttp where it is not."""

from __future__ import annotations

import io
import time
from typing import Any

import aiohttp
import yarl
from aiohttp import web
from multidict import CIMultiDict

from reef.engines.engine import Engine
from reef.engines.upstream import why
from reef.gateway.dialect import Problem
from reef.gateway.headers import forwarded
from reef.gateway.wire import Reply, WirePool, WireReply

KEPT_ALIVE_S = 15.0
LIST_TIMEOUT_S = 10.0
AT_ONCE_S = 1.0
"""A connection that breaks this soon was dead before; one that breaks later had a server at work on the call."""
_IN_PIECES_ABOVE = 1024 * 1024


class UpstreamCalls:
    """The connections of one gateway. Nothing is retried but a request that met a connection already dead."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s, sock_read=read_timeout_s)
        self._wires = WirePool(connect_timeout_s, read_timeout_s, KEPT_ALIVE_S)
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def post(
        self, engine: Engine, route: str, request: web.Request, body: bytes, attempts: list[dict[str, Any]]
    ) -> Reply:
        """Send the call and return when the reply's headers have come.

        A kept connection may have died unseen: when it breaks without a byte of a reply, the call is sent once more
        over a fresh one, noted in `attempts`. Raises aiohttp.ClientError, TimeoutError or OSError.
        """
        url = _url(engine, route, request)
        found = forwarded(request.headers, engine.headers())
        if _is_plain(engine, url):
            return await self._post_plain(url, found, body, attempts)
        return await self._post_aiohttp(engine, url, found, body, attempts)

    async def list_models(self, engine: Engine, request: web.Request) -> tuple[int, CIMultiDict[str], bytes]:
        """Status, headers and body of the engine's `/models`. Raises like `post`."""
        async with self._session().get(
            _url(engine, "/models", request),
            headers=forwarded(request.headers, engine.headers()),
            proxy=engine.proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=LIST_TIMEOUT_S),
        ) as reply:
            return reply.status, CIMultiDict(reply.headers), await reply.read()

    def problem(self, engine: Engine, error: BaseException) -> Problem:
        """A connection failure as an error for the client, in words without keys; the engine is told as well."""
        reason = why(error)
        engine.observed(f"it cannot be reached: {reason}")
        timed_out = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
        message = f"the model server at {engine.base_url} cannot be reached: {reason}"
        return Problem(504 if timed_out else 502, message, "api_error", "upstream_unreachable")

    async def close(self) -> None:
        """Close every connection."""
        self._wires.close()
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def _post_plain(
        self, url: yarl.URL, found: CIMultiDict[str], body: bytes, attempts: list[dict[str, Any]]
    ) -> Reply:
        address = (url.host or "", url.port or 80)
        head = _head(url, found, len(body))
        wire = await self._wires.take(address)
        try:
            return WireReply(self._wires, address, wire, await wire.send(head, body))
        except aiohttp.ServerDisconnectedError as error:
            if not wire.used:
                raise
            attempts.append({"error": why(error), "connection": "kept"})
        except BaseException:
            wire.close()
            raise
        attempts.append({"connection": "fresh"})
        wire = await self._wires.take(address, fresh=True)
        try:
            return WireReply(self._wires, address, wire, await wire.send(head, body))
        except BaseException:
            wire.close()
            raise

    async def _post_aiohttp(
        self, engine: Engine, url: yarl.URL, found: CIMultiDict[str], body: bytes, attempts: list[dict[str, Any]]
    ) -> Reply:
        sent = time.monotonic()
        try:
            return _AiohttpReply(
                await self._session().post(
                    url, data=_payload(body), headers=found, proxy=engine.proxy, allow_redirects=False
                )
            )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) or time.monotonic() - sent > AT_ONCE_S:
                raise
            attempts.append({"error": why(error), "connection": "kept"})
        attempts.append({"connection": "fresh"})
        return _AiohttpReply(
            await self._session(fresh=True).post(
                url, data=_payload(body), headers=found, proxy=engine.proxy, allow_redirects=False
            )
        )

    def _session(self, fresh: bool = False) -> aiohttp.ClientSession:
        found = self._fresh if fresh else self._kept
        if found is None:
            found = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True)
                if fresh
                else aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S),
                timeout=self._timeout,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("user-agent", "accept", "content-type"),
            )
            if fresh:
                self._fresh = found
            else:
                self._kept = found
        return found


class _AiohttpReply:
    """A reply of aiohttp's client in the relay's form."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content_length = response.content_length
        self._response = response

    async def readany(self) -> bytes:
        return await self._response.content.readany()

    def at_eof(self) -> bool:
        return self._response.content.at_eof()

    def release(self) -> None:
        self._response.release()


def _url(engine: Engine, route: str, request: web.Request) -> yarl.URL:
    return yarl.URL(engine.url(route, request.rel_url.raw_query_string), encoded=True)


def _is_plain(engine: Engine, url: yarl.URL) -> bool:
    """Whether nothing but plain HTTP is needed to reach `url`."""
    return url.scheme == "http" and engine.proxy is None and url.raw_user is None


def _head(url: yarl.URL, found: CIMultiDict[str], length: int) -> bytes:
    """The request's head. Neither a client's headers, which were parsed, nor a key can hold a line end."""
    lines = [f"POST {url.raw_path_qs} HTTP/1.1\r\nhost: {url.raw_authority}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in found.items()]
    lines.append(f"content-length: {length}\r\n\r\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def _payload(body: bytes) -> bytes | io.BytesIO:
    """A large body goes out in pieces; as one it would keep the loop from everything else."""
    return io.BytesIO(body) if len(body) > _IN_PIECES_ABOVE else body
