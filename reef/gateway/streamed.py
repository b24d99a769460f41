"""Sending a stream of events on as it comes, and putting the receipt in front of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
from aiohttp import web

from reef.engines.upstream import why
from reef.gateway import headers
from reef.gateway.delivery import ClientGone, Delivery
from reef.gateway.dialect import Problem
from reef.gateway.streaming import StreamCopy
from reef.records.calls import State

_NO_END = "the stream ended without its last event"
_TURN_BYTES = 16 * 1024
"""What is copied and looked at in one turn of the loop; a piece of a fast stream may hold thousands of events."""


async def deliver_stream(delivery: Delivery, reply: aiohttp.ClientResponse, copy: StreamCopy) -> web.StreamResponse:
    """Relay `reply` to its end. Raises ClientGone."""
    delivery.stream = copy
    await delivery.begin(reply.status, headers.returned(reply.headers))
    try:
        while piece := await reply.content.readany():
            delivery.recording.first_byte_came()
            for part in _turns(piece):
                copy.take(part)
                await _pass_on(delivery, copy, *copy.watch.feed(part))
                if len(piece) > _TURN_BYTES:
                    # The other streams' events come first: they are few.
                    await asyncio.sleep(0)
    except ClientGone:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await _broken(delivery, f"the model server broke off: {why(error)}")
    await _pass_on(delivery, copy, *copy.watch.finish())
    if not delivery.recording.settled:
        facts = copy.fold.facts(finished=True)
        state: State = "failed" if facts.error else "partial"
        await delivery.settle(delivery.end(state, facts, facts.error or _NO_END))
    return await delivery.finish()


def _turns(piece: bytes) -> Iterator[bytes]:
    """`piece` in parts for one turn each, cut behind whole events where there is one."""
    start = 0
    while len(piece) - start > _TURN_BYTES:
        cut = piece.rfind(b"\n\n", start, start + _TURN_BYTES)
        end = start + _TURN_BYTES if cut < 0 else cut + 2
        yield piece[start:end]
        start = end
    yield piece[start:]


async def _pass_on(delivery: Delivery, copy: StreamCopy, passing: bytes, ending: bytes) -> None:
    if passing:
        await delivery.write(passing)
    if not ending:
        return
    if not delivery.recording.settled:
        facts = copy.fold.facts(finished=True)
        stored = await delivery.settle(delivery.end("failed" if facts.error else "complete", facts))
        if stored:
            ending = copy.fold.ending(ending, delivery.recording.receipt)
    await delivery.write(ending)


async def _broken(delivery: Delivery, message: str) -> web.StreamResponse:
    """The upstream broke off: the client is told in the stream, unless the stream had ended already."""
    if delivery.recording.settled:
        return await delivery.finish()
    await delivery.settle(delivery.end("failed", delivery.said(), message))
    return await delivery.break_off(Problem(502, message, "api_error", "upstream_broke_off"))
