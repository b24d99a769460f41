"""What one call sends to the upstream: the client's own bytes, or the same request in a dialect that it speaks.

A request goes on byte for byte where the upstream speaks its dialect. Two exceptions: reasoning that reef itself sealed
for the client, in the name of a server without seals, is taken out before another server would refuse it; and where the
person says that a server refuses the newer words of chat, it is sent the older ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import yarl
from aiohttp import web
from multidict import CIMultiDict

from reef.engines.dialects import ROUTE_OF
from reef.engines.engine import CHAT, MESSAGES, RESPONSES, Engine
from reef.errors import InvalidInput, UpstreamFailed
from reef.gateway import headers
from reef.gateway.dialect import Dialect
from reef.gateway.lenient import dump
from reef.gateway.translate import (
    UPSTREAM_HEADERS,
    CannotCarry,
    Compat,
    Exchange,
    choices,
    exact,
    holds_minted,
    older_spellings,
    translate,
    without_minted_reasoning,
    without_minted_thinking,
)

_WITHOUT_MINTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    MESSAGES: without_minted_thinking,
    RESPONSES: without_minted_reasoning,
}
T = TypeVar("T")
_NEWER_WORDS = (b"developer", b"max_completion_tokens")


@dataclass(slots=True)
class Sending:
    """One call as it goes out."""

    url: yarl.URL
    headers: CIMultiDict[str]
    body: bytes
    exchange: Exchange | None = None
    """How to translate what comes back; None when it goes to the client as it comes."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the record says of it."""


# Nearly every call goes to one of few addresses, and what is found out of an address is kept in it.
@lru_cache(maxsize=64)
def address(url: str) -> yarl.URL:
    """An address that is encoded already, as `Engine.url` gives it."""
    return yarl.URL(url, encoded=True)


def as_it_came(engine: Engine, dialect: Dialect, request: web.Request, body: bytes) -> Sending:
    """The request for an upstream that speaks its dialect."""
    url = address(engine.url(dialect.route, request.rel_url.raw_query_string))
    found = headers.forwarded(request.headers, engine.headers(dialect.name))
    if dialect.name in _WITHOUT_MINTED and holds_minted(body):
        return _with(url, found, body, _WITHOUT_MINTED[dialect.name], "own_reasoning_left_out")
    if engine.older_spellings and dialect.name == CHAT and any(word in body for word in _NEWER_WORDS):
        return _with(url, found, body, older_spellings, "older_spellings")
    return Sending(url, found, body)


def _with(
    url: yarl.URL,
    found: CIMultiDict[str],
    body: bytes,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    note: str,
) -> Sending:
    sent = _changed(body, change)
    return (
        Sending(url, found, body) if sent is body else Sending(url, headers.rewritten(found), sent, notes={note: True})
    )


def translated_request(
    engine: Engine, dialect: Dialect, request: web.Request, body: bytes, receipt: str, spoken: frozenset[str]
) -> Sending:
    """The request for an upstream that speaks only `spoken`.

    Raises InvalidInput naming what cannot be carried, UpstreamFailed when the upstream speaks none of reef's dialects.
    """
    ways = choices(dialect.name, spoken)
    if not ways:
        raise UpstreamFailed(
            f"the model server at {engine.base_url} does not speak {dialect.name}, only {', '.join(sorted(spoken))}"
        )
    compat = Compat(effort=engine.takes_effort)
    exchange, written = _not_too_deep(lambda: _exchange(dialect.name, ways, _object(body), receipt, compat))
    upstream = exchange.upstream
    own = {**UPSTREAM_HEADERS.get(upstream, {}), **engine.headers(upstream)}
    left = {"tools_left_out": list(exchange.tools_left), "fields_left_out": list(exchange.fields_left)}
    facts = {"from": dialect.name, "to": upstream, **{name: names for name, names in left.items() if names}}
    # The query is the client's dialect's (`?beta=true`), and so are some of the headers.
    url = address(engine.url(ROUTE_OF[upstream]))
    found = headers.translated(request.headers, own)
    return Sending(url, found, written, exchange, {"translated": facts})


def _exchange(
    client: str, ways: list[str], request: dict[str, Any], receipt: str, compat: Compat
) -> tuple[Exchange, bytes]:
    """The request in the first of `ways` that carries all of it. Raises what the best of them says when none does."""
    created = int(time.time())
    refused: list[CannotCarry] = []
    for upstream in ways:
        try:
            exchange = translate(client, upstream, request, receipt=receipt, created=created, compat=compat)
            return exchange, dump(exchange.body)
        except CannotCarry as error:
            refused.append(error)
    raise refused[0]


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = exact(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("the request's body is not a JSON object")
    return found


def _changed(body: bytes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """`body` after `change`; itself, byte for byte, where that changes nothing."""

    def write() -> bytes:
        request = _object(body)
        found = change(request)
        return body if found is request else dump(found)

    return _not_too_deep(write)


def _not_too_deep(write: Callable[[], T]) -> T:
    """What `write` makes of a request. Raises InvalidInput for one that can be read and is too deep to be written."""
    try:
        return write()
    except RecursionError:
        raise InvalidInput("the request's body is nested too deep") from None
