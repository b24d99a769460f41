"""A small HTTP/1.1 client for plain upstreams: one call a connection at a time, connections kept, bytes as they come.

For a server on the same machine most of a relayed call's cost is the client library; this does what the relay needs and
nothing else. Addresses with TLS, a proxy or a user name in them go through aiohttp (`reef.gateway.upstream`). Failures
are aiohttp's exceptions, so that both ways are told alike.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from reef.gateway.reply_parser import BadReply, Head, ReplyParser

BUFFER_BYTES = 256 * 1024
"""Bytes of a reply that may wait for a slow client before the upstream is made to wait."""
_PIECE = 256 * 1024


class Wire(asyncio.Protocol):
    """One connection to an upstream."""

    def __init__(self, read_timeout_s: float) -> None:
        self._read_timeout_s = read_timeout_s
        self._transport: asyncio.Transport | None = None
        self._parser: ReplyParser | None = None
        self._head: Head | None = None
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._active = time.monotonic()
        self._unsent = False
        self.used = False
        """Whether it has carried a call before."""

    @property
    def usable(self) -> bool:
        """Whether another call may go over it."""
        return self._transport is not None and not self._transport.is_closing() and self._error is None

    async def send(self, head: bytes, body: bytes) -> Head:
        """Send a request and return the reply's head when it has come. Raises aiohttp.ClientError or TimeoutError."""
        assert self._transport is not None
        self._parser = ReplyParser()
        self._head = None
        self._active = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._read_timeout_s, self._look)
        if len(body) <= _PIECE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            await self._write(memoryview(body))
        while (found := self._parser.head) is None:
            await self._wait()
        return found

    async def readany(self) -> bytes:
        """The bytes of the body that have come, waiting for some; empty at its end. Raises like `send`."""
        while not self._pieces:
            if self.at_eof():
                return b""
            await self._wait()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def at_eof(self) -> bool:
        """Whether the whole body has been read."""
        return self._parser is not None and self._parser.done and not self._pieces

    def finish(self) -> bool:
        """End the call. Returns whether the connection can carry another; closes it when not."""
        parser, self._parser = self._parser, None
        clean = parser is not None and parser.done and not self._pieces and parser.kept and not self._unsent
        self._pieces.clear()
        self._size = 0
        self.used = True
        if not (clean and self.usable):
            self.close()
            return False
        return True

    def close(self) -> None:
        """Close the connection at once."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._active = time.monotonic()
        if self._parser is None:
            # Nothing was asked for: whatever this is, it must not become part of the next reply.
            self.close()
            return
        try:
            self._take(self._parser, self._parser.feed(data))
        except BadReply as error:
            self._fail(aiohttp.ClientPayloadError(str(error)))
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        parser = self._parser
        if parser is not None and not parser.done:
            if exc is None and parser.close_ends():
                self._wake()
            elif self._head is None:
                self._fail(aiohttp.ServerDisconnectedError())
            else:
                self._fail(aiohttp.ClientPayloadError("the reply is not complete"))
        self._transport = None
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _take(self, parser: ReplyParser, pieces: list[bytes]) -> None:
        self._head = parser.head
        for piece in pieces:
            self._pieces.append(piece)
            self._size += len(piece)
        if self._size > BUFFER_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        if self._head is not None:
            self._wake()

    async def _write(self, body: memoryview) -> None:
        """Send a large body in pieces. An upstream may answer or close before it has all of it; then the rest stays."""
        for place in range(0, len(body), _PIECE):
            if self._transport is None or self._transport.is_closing() or self._head is not None:
                self._unsent = True
                return
            self._transport.write(body[place : place + _PIECE])
            if self._writable is not None:
                self._active = time.monotonic()
                await self._writable

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _look(self) -> None:
        """One timer a connection: it comes back when there was life since, and ends with the last call."""
        self._watch = None
        if self._parser is None or self._parser.done:
            return
        left = self._active + self._read_timeout_s - time.monotonic()
        if self._paused:
            left = self._read_timeout_s
        if left > 0:
            self._watch = asyncio.get_running_loop().call_later(left, self._look)
            return
        self._fail(aiohttp.SocketTimeoutError("no answer in time"))
        self.close()


class WirePool:
    """Connections to plain upstreams, kept for a while after a call."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float, kept_alive_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._kept_alive_s = kept_alive_s
        self._idle: dict[tuple[str, int], list[tuple[float, Wire]]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def take(self, address: tuple[str, int], fresh: bool = False) -> Wire:
        """A connection to this address, a kept one unless `fresh`. Raises OSError or TimeoutError."""
        kept = self._idle.get(address)
        while kept and not fresh:
            since, wire = kept.pop()
            if wire.usable and time.monotonic() - since < self._kept_alive_s:
                return wire
            wire.close()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, wire = await loop.create_connection(lambda: Wire(self._read_timeout_s), *address)
        except TimeoutError:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from None
        return wire

    def give_back(self, address: tuple[str, int], wire: Wire) -> None:
        """Keep a connection whose call is over, if it can carry another."""
        if wire.finish():
            self._idle.setdefault(address, []).append((time.monotonic(), wire))
            if self._sweep is None:
                self._sweep = asyncio.get_running_loop().call_later(self._kept_alive_s, self._close_old)

    def close(self) -> None:
        """Close every idle connection."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for kept in self._idle.values():
            for _, wire in kept:
                wire.close()
        self._idle.clear()

    def _close_old(self) -> None:
        self._sweep = None
        limit = time.monotonic() - self._kept_alive_s
        for address, kept in list(self._idle.items()):
            for since, wire in kept:
                if since <= limit:
                    wire.close()
            self._idle[address] = [(since, wire) for since, wire in kept if since > limit]
            if not self._idle[address]:
                del self._idle[address]
        if self._idle:
            self._sweep = asyncio.get_running_loop().call_later(self._kept_alive_s, self._close_old)


class Reply(Protocol):
    """A reply that is coming, over whichever client."""

    status: int
    headers: CIMultiDictProxy[str]
    content_length: int | None
    """The body's announced length, None when it has none."""

    async def readany(self) -> bytes:
        """The bytes that have come, waiting for some; empty at the end. Raises aiohttp.ClientError or TimeoutError."""

    def at_eof(self) -> bool:
        """Whether the whole body has been read."""

    def release(self) -> None:
        """The call is over: the connection is kept when the reply was read to its end, else closed."""


async def read_all(reply: Reply) -> bytes:
    """The whole body."""
    pieces = []
    while piece := await reply.readany():
        pieces.append(piece)
    return b"".join(pieces)


class WireReply:
    """A reply that is coming over a connection of the pool."""

    def __init__(self, pool: WirePool, address: tuple[str, int], wire: Wire, head: Head) -> None:
        self.status = head.status
        self.headers = CIMultiDictProxy(CIMultiDict(head.headers))
        self.content_length = head.length
        self._pool = pool
        self._address = address
        self._wire = wire
        self._over = False

    async def readany(self) -> bytes:
        return await self._wire.readany()

    def at_eof(self) -> bool:
        return self._wire.at_eof()

    def release(self) -> None:
        if not self._over:
            self._over = True
            self._pool.give_back(self._address, self._wire)
