"""Sending a stream of events on as it comes, and putting the receipt in front of its end."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from reef.engines.upstream import why
from reef.gateway import headers
from reef.gateway.delivery import ClientGone, Delivery
from reef.gateway.dialect import Problem, ReplyFacts
from reef.gateway.streaming import StreamCopy
from reef.records.calls import State

_NO_END = "the stream ended without its last event"


async def deliver_stream(delivery: Delivery, reply: aiohttp.ClientResponse, copy: StreamCopy) -> web.StreamResponse:
    """Relay `reply` to its end. Raises ClientGone."""
    delivery.stream = copy
    await delivery.begin(reply.status, headers.returned(reply.headers))
    try:
        while piece := await reply.content.readany():
            delivery.recording.first_byte_came()
            copy.take(piece)
            await _pass_on(delivery, copy, *copy.watch.feed(piece))
    except ClientGone:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await _broken(delivery, f"the model server broke off: {why(error)}")
    await _pass_on(delivery, copy, *copy.watch.finish())
    if not delivery.recording.settled:
        await _settle(delivery, copy.fold.facts(finished=True))
    return await delivery.finish()


async def _pass_on(delivery: Delivery, copy: StreamCopy, passing: bytes, ending: bytes) -> None:
    if passing:
        await delivery.write(passing)
    if not ending:
        return
    if not delivery.recording.settled:
        facts = copy.fold.facts(finished=True)
        if await _settle(delivery, facts) and facts.ended:
            ending = copy.fold.ending(ending, delivery.recording.receipt)
    await delivery.write(ending)


async def _settle(delivery: Delivery, facts: ReplyFacts) -> bool:
    """Store how the stream ended; True when the client's receipt resolves to that now."""
    state: State = "failed" if facts.error else "complete" if facts.ended else "partial"
    error = None if facts.error or facts.ended else _NO_END
    return await delivery.settle(delivery.end(state, facts, error))


async def _broken(delivery: Delivery, message: str) -> web.StreamResponse:
    """The upstream broke off: the client is told in the stream, unless the stream had ended already."""
    if delivery.recording.settled:
        return await delivery.finish()
    await delivery.settle(delivery.end("failed", delivery.said(), message))
    return await delivery.break_off(Problem(502, message, "api_error", "upstream_broke_off"))
