"""Sending a stream of events on as it comes, and putting the receipt in front of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from reef.engines.upstream import why
from reef.errors import ReefError
from reef.gateway.again import Held
from reef.gateway.delivery import ClientGone, Delivery
from reef.gateway.dialect import Problem, ReplyFacts
from reef.gateway.streaming import StreamCopy
from reef.gateway.translate import Usage
from reef.gateway.wire import Reply
from reef.records.calls import State

_NO_END = "the stream ended without its last event"
_TURN_BYTES = 16 * 1024
"""What is copied and looked at in one turn of the loop; a piece of a fast stream may hold thousands of events."""

_AFTER_THE_END_S = 0.2
"""How long an upstream that has said its end may take to end its body too, so that its connection is used again."""


class Bridge(Protocol):
    """Turns the upstream's bytes into whole events of the client's dialect."""

    @property
    def over(self) -> bool:
        """Whether the client has been told an end, the normal one or the upstream's error."""

    @property
    def usage(self) -> Usage | None:
        """What the upstream counted, after its end; not every client is told."""

    def feed(self, piece: bytes) -> bytes:
        """What the client gets for the next bytes."""

    def finish(self) -> bytes:
        """The same for the end of the upstream's stream. Raises ReefError when there was no reply in it."""


async def deliver_stream(
    delivery: Delivery,
    reply: Reply,
    copy: StreamCopy,
    found: CIMultiDict[str],
    bridge: Bridge | None = None,
) -> web.StreamResponse:
    """Relay `reply` to its end, with the headers `found`; through `bridge` when there is one.

    Raises ClientGone, BrokenOff.
    """
    delivery.stream = copy
    try:
        await _read(delivery, reply, copy, found, bridge)
    except ClientGone:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await _broken(delivery, f"the model server broke off: {why(error)}")
    except ReefError as error:
        return await _broken(delivery, error.message)
    await _write(delivery, copy, bridge, *copy.watch.finish())
    if bridge is not None and not bridge.over:
        # Here the bare close is reef's own, and it says why.
        return await _broken(delivery, _NO_END, "partial")
    if not delivery.recording.settled:
        await _settle(delivery, _facts(copy, bridge))
    response = await delivery.finish()
    if bridge is not None:
        await _drain(reply)
    return response


async def _read(
    delivery: Delivery,
    reply: Reply,
    copy: StreamCopy,
    found: CIMultiDict[str],
    bridge: Bridge | None,
) -> None:
    """Send `reply` on until its body ends, or until a bridge has told the client an end."""
    held = Held() if delivery.asks_again else None
    if held is None:
        await delivery.begin(reply.status, found)
    while piece := await reply.content.readany():
        delivery.recording.first_byte_came()
        if held is not None:
            if not (piece := held.take(piece)):
                continue
            held = None
            await delivery.begin(reply.status, found)
        if bridge is None and len(piece) <= _TURN_BYTES:
            await _pass_on(delivery, copy, piece, None)
            continue
        for part in _turns(piece):
            await _pass_on(delivery, copy, part if bridge is None else bridge.feed(part), bridge)
            if bridge is not None and bridge.over:
                return
            if len(piece) > _TURN_BYTES:
                # The other streams' events come first: they are few.
                await asyncio.sleep(0)
    if held is not None:
        await delivery.begin(reply.status, found)
        await _pass_on(delivery, copy, held.rest() if bridge is None else bridge.feed(held.rest()), bridge)
    if bridge is not None:
        await _pass_on(delivery, copy, bridge.finish(), bridge)


async def _drain(reply: Reply) -> None:
    """Read what stands behind a translated stream's end. Nobody waits for it, so whatever goes wrong is nothing."""
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(_AFTER_THE_END_S):
            while await reply.content.readany():
                pass


def _turns(piece: bytes) -> Iterator[bytes]:
    """`piece` in parts for one turn each, cut behind whole events where there is one."""
    start = 0
    while len(piece) - start > _TURN_BYTES:
        cut = piece.rfind(b"\n\n", start, start + _TURN_BYTES)
        end = start + _TURN_BYTES if cut < 0 else cut + 2
        yield piece[start:end]
        start = end
    yield piece[start:]


async def _pass_on(delivery: Delivery, copy: StreamCopy, piece: bytes, bridge: Bridge | None) -> None:
    if not piece:
        return
    copy.take(piece)
    passing, ending = copy.watch.feed(piece)
    if ending:
        await _write(delivery, copy, bridge, passing, ending)
    elif passing:
        await delivery.write(passing)


async def _write(delivery: Delivery, copy: StreamCopy, bridge: Bridge | None, passing: bytes, ending: bytes) -> None:
    if passing:
        await delivery.write(passing)
    if not ending:
        return
    if not delivery.recording.settled:
        facts = _facts(copy, bridge)
        if await _settle(delivery, facts) and facts.ended:
            ending = copy.fold.ending(ending, delivery.recording.receipt)
    await delivery.write(ending)


def _facts(copy: StreamCopy, bridge: Bridge | None) -> ReplyFacts:
    facts = copy.fold.facts(finished=True)
    usage = bridge.usage if bridge is not None else None
    if usage is not None and facts.prompt_tokens is None:
        facts.prompt_tokens, facts.completion_tokens, facts.cached_tokens = usage.input, usage.output, usage.cached
    return facts


async def _settle(delivery: Delivery, facts: ReplyFacts) -> bool:
    """Store how the stream ended; True when the client's receipt resolves to that now."""
    state: State = "failed" if facts.error else "complete" if facts.ended else "partial"
    error = None if facts.error or facts.ended else _NO_END
    return await delivery.settle(delivery.end(state, facts, error))


async def _broken(delivery: Delivery, message: str, state: State = "failed") -> web.StreamResponse:
    """The upstream broke off: the client is told in the stream, unless the stream had ended already."""
    if delivery.recording.settled:
        return await delivery.finish()
    problem = Problem(502, message, "api_error", "upstream_broke_off")
    if delivery.response is None:
        return await delivery.refused(problem)
    await delivery.settle(delivery.end(state, delivery.said(), message))
    return await delivery.break_off(problem)
