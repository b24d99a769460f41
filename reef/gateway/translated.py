"""Answering in the client's dialect with the reply of an upstream that speaks another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from reef.engines.upstream import why
from reef.errors import ReefError, UpstreamFailed
from reef.gateway import encodings, headers
from reef.gateway.again import BrokenOff
from reef.gateway.bodies import joined
from reef.gateway.delivery import Delivery
from reef.gateway.dialect import BROKEN_OFF, Problem
from reef.gateway.dialects import DIALECT_OF
from reef.gateway.lenient import dump
from reef.gateway.streamed import Bridge, deliver_stream
from reef.gateway.streaming import StreamCopy
from reef.gateway.translate import Exchange, Usage, error_reply, exact
from reef.gateway.whole import deliver_body, is_event_stream
from reef.gateway.wire import Reply
from reef.records.calls import LARGE

log = logging.getLogger("reef.gateway")
T = TypeVar("T")


async def deliver_translated(
    delivery: Delivery, reply: Reply, exchange: Exchange, keep_raw: bool
) -> web.StreamResponse:
    """Translate `reply` to its end: a stream as it comes, anything else when it is whole.

    Raises ClientGone, BrokenOff.
    """
    found = headers.rewritten(headers.returned(reply.headers))
    for name in ("content-encoding", "etag"):
        found.popall(name, None)
    if 200 <= reply.status < 300 and delivery.asked.stream:
        found["content-type"] = "text/event-stream; charset=utf-8"
        copy = StreamCopy(delivery.dialect, delivery.recording, keep_raw)
        as_it_comes = is_event_stream(reply) and encodings.named(reply.headers) is None
        bridge: Bridge = exchange.bridge() if as_it_comes else _Collected(exchange, reply)
        return await deliver_stream(delivery, reply, copy, found, _Guarded(bridge))
    found["content-type"] = "application/json"
    return await _deliver_whole(delivery, reply, exchange, found)


async def _deliver_whole(
    delivery: Delivery, reply: Reply, exchange: Exchange, found: CIMultiDict[str]
) -> web.StreamResponse:
    pieces: list[bytes] = []
    try:
        while piece := await reply.content.readany():
            delivery.recording.first_byte_came()
            pieces.append(piece)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await delivery.refused(_failed(f"the model server broke off: {why(error)}", "upstream_broke_off"))
    received = await joined(pieces, sum(map(len, pieces)))

    def read() -> tuple[bytes, bool]:
        if reply.status >= 400:
            return dump(error_reply(exchange.client, reply.status, _plain(reply, received) or b"")), True
        value, ended = _reply_in(exchange, reply, received)
        return dump(exchange.reply(value)), ended

    try:
        body, ended = await asyncio.to_thread(_guarded, read) if len(received) > LARGE else _guarded(read)
    except ReefError as error:
        if error.message == BROKEN_OFF and delivery.asks_again:
            raise BrokenOff from None
        return await delivery.refused(_failed(error.message, "untranslatable"))
    return await deliver_body(delivery, reply.status, found, body, ended)


def _guarded(read: Callable[[], T]) -> T:
    """Translate; whatever a server sends, the client gets an answer. Raises ReefError."""
    try:
        return read()
    except ReefError:
        raise
    except Exception:
        log.exception("a reply could not be translated")
        raise UpstreamFailed("the model server's reply could not be translated") from None


class _Guarded:
    """A bridge that raises nothing but ReefError."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    @property
    def over(self) -> bool:
        """As for a `Bridge`."""
        return self._bridge.over

    @property
    def usage(self) -> Usage | None:
        """As for a `Bridge`."""
        return self._bridge.usage

    def feed(self, piece: bytes) -> bytes:
        """As for a `Bridge`."""
        return _guarded(lambda: self._bridge.feed(piece))

    def finish(self) -> bytes:
        """As for a `Bridge`."""
        return _guarded(self._bridge.finish)


class _Collected:
    """A bridge for a reply that cannot be translated as it comes: not a stream, or a compressed one."""

    def __init__(self, exchange: Exchange, reply: Reply) -> None:
        self._exchange = exchange
        self._reply = reply
        self._bridge = exchange.bridge()
        self._pieces: list[bytes] = []

    @property
    def over(self) -> bool:
        """As for a `Bridge`."""
        return self._bridge.over

    @property
    def usage(self) -> Usage | None:
        """As for a `Bridge`."""
        return self._bridge.usage

    def feed(self, piece: bytes) -> bytes:
        """Nothing can be said yet."""
        self._pieces.append(piece)
        return b""

    def finish(self) -> bytes:
        """The whole stream for the client. Raises UpstreamFailed when there was no reply."""
        body = b"".join(self._pieces)
        if is_event_stream(self._reply):
            plain = _plain(self._reply, body)
            if plain is None:
                raise UpstreamFailed("the reply is compressed in a way that cannot be read")
            return self._bridge.feed(plain) + self._bridge.finish()
        return self._bridge.whole(_reply_in(self._exchange, self._reply, body)[0])


def _reply_in(exchange: Exchange, reply: Reply, body: bytes) -> tuple[dict[str, Any], bool]:
    """A reply of the upstream as one object of its own dialect, and whether it has come to its end.

    Raises UpstreamFailed when it is none.
    """
    plain = _plain(reply, body)
    if plain is None:
        raise UpstreamFailed("the reply is compressed in a way that cannot be read")
    ended = True
    if is_event_stream(reply):
        fold = DIALECT_OF[exchange.upstream].fold()
        fold.feed(plain)
        facts = fold.facts(finished=True)
        if facts.body is None or facts.error:
            raise UpstreamFailed(facts.error or "the model server's event stream holds no reply")
        plain, ended = facts.body, facts.ended
    try:
        value = exact(plain)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UpstreamFailed("the model server's reply is not a JSON object")
    return value, ended


def _plain(reply: Reply, body: bytes) -> bytes | None:
    return encodings.decoded(encodings.named(reply.headers), body)


def _failed(message: str, code: str) -> Problem:
    return Problem(502, message, "api_error", code)
