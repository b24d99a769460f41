"""One HTTP call to an upstream over aiohttp's connections and parser, without the session on top of them.

The session follows redirects, keeps cookies and decodes bodies. A relay wants none of it, and for a server on the same
machine its steps are a large part of what a call costs. Connecting, TLS, proxies, the pool and the parsing of replies
are aiohttp's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType

import aiohttp
import yarl
from aiohttp import ClientRequest, hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage, StreamWriter
from multidict import CIMultiDict

KEPT_ALIVE_S = 15.0
AT_ONCE = 64 * 1024
"""A longer body is sent piece by piece beside the wait for the reply: a server may answer before it has all of it."""
_BUFFER = 64 * 1024
"""Bytes of a reply that wait for a slow client before the upstream is made to wait."""


class Reply:
    """A reply whose headers have come. It gives its connection back by itself when its body has come too."""

    __slots__ = ("_connection", "_sending", "content", "headers", "status")

    def __init__(
        self,
        message: RawResponseMessage,
        content: aiohttp.StreamReader,
        connection: Connection,
        sending: asyncio.Task[None] | None,
    ) -> None:
        self.status = message.code
        self.headers = message.headers
        self.content = content
        """The body as it comes, still encoded as the headers say."""
        self._connection = connection
        self._sending = sending
        content.on_eof(self.release)

    @property
    def content_length(self) -> int | None:
        """The body's announced length in bytes, None when it has none."""
        length = self.headers.get(hdrs.CONTENT_LENGTH)
        return None if length is None else int(length)

    async def read(self) -> bytes:
        """The whole body. Raises aiohttp.ClientError, TimeoutError or OSError."""
        return await self.content.read()

    def release(self) -> None:
        """Give the connection back when the reply was read to its end, close it when it was not."""
        if self._sending is not None and not self._sending.done():
            self.close()
        else:
            self._connection.release()

    def close(self) -> None:
        """Close the connection at once."""
        if self._sending is not None:
            self._sending.cancel()
        self._connection.close()

    async def __aenter__(self) -> Reply:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Connections:
    """Connections to upstreams. Made on the running loop."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float, kept: bool) -> None:
        """`kept`: a connection waits a while for the next call; else each call has one of its own."""
        self._kept = kept
        self._read_timeout_s = read_timeout_s
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s)
        self._connector = (
            aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S)
            if kept
            else aiohttp.TCPConnector(limit=0, force_close=True)
        )
        self._places: dict[tuple[str, str, str | None], ClientRequest] = {}

    async def send(
        self, method: str, url: yarl.URL, headers: Mapping[str, str], body: bytes = b"", proxy: str | None = None
    ) -> Reply:
        """Send a request and return when the reply's headers have come. Redirects are replies like any other.

        `headers` lack only what the connection needs: host, length and what the address itself holds. Raises
        aiohttp.ClientError, TimeoutError or OSError.
        """
        place = self._place(url, proxy)
        try:
            connection = await self._connector.connect(place, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        sending: asyncio.Task[None] | None = None
        try:
            protocol = connection.protocol
            assert protocol is not None
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=self._read_timeout_s,
                read_bufsize=_BUFFER,
            )
            writer = StreamWriter(protocol, protocol._loop)
            target = str(url) if proxy is not None and not place.is_ssl() else url.raw_path_qs
            await writer.write_headers(f"{method} {target} HTTP/1.1", self._complete(place, headers, method, body))
            if len(body) > AT_ONCE:
                sending = asyncio.create_task(_send(writer, protocol, body))
            else:
                await writer.write(body, drain=False)
                protocol.start_timeout()
            while True:
                message, content = await protocol.read()
                if message.code > 199 or message.code == 101:
                    return Reply(message, content, connection, sending)
        except BaseException as error:
            if sending is not None:
                sending.cancel()
            connection.close()
            if isinstance(error, HttpProcessingError):
                raise aiohttp.ClientConnectionError("the reply is not HTTP") from error
            if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientError | TimeoutError):
                raise aiohttp.ClientOSError(*error.args) from error
            if isinstance(error, aiohttp.ClientConnectionResetError):
                # Nothing was sent: the server had closed a connection that was kept.
                raise aiohttp.ServerDisconnectedError from error
            raise

    async def close(self) -> None:
        """Close every connection."""
        await self._connector.close()

    def _place(self, url: yarl.URL, proxy: str | None) -> ClientRequest:
        """What the connector wants to know of where a call goes: the same for every call to one server."""
        key = (url.scheme, url.raw_authority, proxy)
        found = self._places.get(key)
        if found is None:
            way = None if proxy is None else yarl.URL(proxy)
            origin = url.with_path("/")
            found = self._places[key] = ClientRequest("POST", origin, loop=asyncio.get_running_loop(), proxy=way)
        return found

    def _complete(self, place: ClientRequest, headers: Mapping[str, str], method: str, body: bytes) -> CIMultiDict[str]:
        found = CIMultiDict(headers)
        found[hdrs.HOST] = place.headers[hdrs.HOST]
        for name in (hdrs.AUTHORIZATION, hdrs.PROXY_AUTHORIZATION):
            if name in place.headers:
                found.setdefault(name, place.headers[name])
        if body or method == hdrs.METH_POST:
            found[hdrs.CONTENT_LENGTH] = str(len(body))
        if not self._kept:
            found[hdrs.CONNECTION] = "close"
        return found


async def _send(writer: StreamWriter, protocol: ResponseHandler, body: bytes) -> None:
    """Send a long body, the loop having its turn in between; nothing of it is copied."""
    view = memoryview(body)
    try:
        for place in range(0, len(view), AT_ONCE):
            await writer.write(view[place : place + AT_ONCE])
            await asyncio.sleep(0)
    except OSError as error:
        # The reply may be there all the same; only who still waits for it is told.
        if not protocol.is_eof() and protocol.exception() is None:
            protocol.set_exception(aiohttp.ClientOSError(error.errno, "the request could not be sent whole"), error)
    else:
        protocol.start_timeout()
