"""Sending on a reply that is one body, and folding a stream that nobody asked for into one."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from reef.engines.upstream import why
from reef.gateway import encodings, headers
from reef.gateway.again import HELD_MAX, BrokenOff
from reef.gateway.bodies import joined
from reef.gateway.delivery import ClientGone, Delivery
from reef.gateway.dialect import BROKEN_OFF, Problem, ReplyFacts
from reef.gateway.guarded import UNREADABLE
from reef.gateway.wire import Reply
from reef.records.calls import LARGE, State

log = logging.getLogger("reef.gateway")


async def deliver_whole(delivery: Delivery, reply: Reply) -> web.StreamResponse:
    """Relay one body: at once when it has come in one piece, else as it comes, its end waiting for the record.

    Raises ClientGone, BrokenOff.
    """
    found = headers.returned(reply.headers)
    length = reply.content_length
    pieces: list[bytes] = []
    size = sent = 0
    try:
        while piece := await reply.content.readany():
            delivery.recording.first_byte_came()
            pieces.append(piece)
            size += len(piece)
            if size == length or reply.content.at_eof():
                break
            if delivery.asks_again and size < HELD_MAX:
                continue
            if delivery.response is None:
                await delivery.begin(reply.status, found, length)
            await delivery.write(piece)
            sent = len(pieces)
    except ClientGone:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await _broken(delivery, await joined(pieces, size), f"the model server broke off: {why(error)}")
    body = await joined(pieces, size)
    facts = await _read(delivery, reply, body)
    if facts.error == BROKEN_OFF and delivery.asks_again and delivery.response is None:
        raise BrokenOff
    if reply.status >= 400 and not facts.error:
        facts.error = f"the model server answered with status {reply.status}"
    state: State = "failed" if facts.error else "complete" if facts.ended else "partial"
    end = delivery.end(state, facts)
    if delivery.response is None:
        return await delivery.send_whole(reply.status, found, body, end)
    await delivery.settle(end)
    for piece in pieces[sent:]:
        await delivery.write(piece)
    return await delivery.finish()


async def deliver_folded(delivery: Delivery, reply: Reply) -> web.StreamResponse:
    """Answer with one JSON body although the upstream streams: the client did not ask for a stream.

    Raises BrokenOff.
    """
    try:
        body = await reply.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return await _broken(delivery, b"", f"the model server broke off: {why(error)}")
    facts = await _read(delivery, reply, body)
    if facts.error == BROKEN_OFF and delivery.asks_again:
        raise BrokenOff
    if facts.body is None or facts.error:
        message = facts.error or "the model server answered with an event stream that holds no reply"
        return await delivery.refused(Problem(502, message, "api_error", "unexpected_stream"))
    found = headers.returned(reply.headers)
    found.popall("content-encoding", None)
    found["content-type"] = "application/json"
    return await delivery.send_whole(
        reply.status, found, facts.body, delivery.end("complete" if facts.ended else "partial", facts)
    )


async def deliver_body(
    delivery: Delivery, status: int, found: CIMultiDict[str], body: bytes, ended: bool = True
) -> web.StreamResponse:
    """Answer with one body in the client's dialect that reef has made of the upstream's; `ended`: it is whole."""
    read = delivery.dialect.read_reply
    facts = await asyncio.to_thread(read, body) if len(body) > LARGE else read(body)
    if status >= 400 and not facts.error:
        facts.error = f"the model server answered with status {status}"
    state: State = "failed" if facts.error else "complete" if ended else "partial"
    return await delivery.send_whole(status, found, body, delivery.end(state, facts))


async def deliver_estimate(delivery: Delivery, body: bytes) -> web.StreamResponse:
    """Answer with an estimate of reef's own, which a header says, because the upstream lacks the route."""
    delivery.status = 200
    delivery.notes["estimate"] = True
    delivery.recording.first_byte_came()
    found = CIMultiDict({"content-type": "application/json", headers.ESTIMATE: "1"})
    return await delivery.send_whole(200, found, body, delivery.end("complete", delivery.dialect.read_reply(body)))


def is_event_stream(reply: Reply) -> bool:
    """Whether the reply's body is a stream of events."""
    return reply.headers.get("content-type", "").lower().startswith("text/event-stream")


async def _read(delivery: Delivery, reply: Reply, body: bytes) -> ReplyFacts:
    """The facts of a body that has come, read from a plain copy. Never raises: the bytes go on whatever they hold."""

    def read() -> ReplyFacts:
        plain: bytes | None = None
        try:
            plain = encodings.decoded(encodings.named(reply.headers), body)
            if plain is None:
                return ReplyFacts(ended=True, error="the reply is compressed in a way that cannot be read")
            if is_event_stream(reply):
                fold = delivery.dialect.fold()
                fold.feed(plain)
                return fold.facts(finished=True)
            return delivery.dialect.read_reply(plain)
        except Exception:
            # The edge of the recording, as in `reef.gateway.guarded`.
            log.exception("a reply could not be read")
            return ReplyFacts(body=plain, ended=True, error=UNREADABLE)

    return await asyncio.to_thread(read) if len(body) > LARGE else read()


async def _broken(delivery: Delivery, body: bytes, message: str) -> web.StreamResponse:
    """The upstream broke off: an error where nothing was sent yet, else a reply that visibly has no end."""
    problem = Problem(502, message, "api_error", "upstream_broke_off")
    if delivery.response is None:
        return await delivery.refused(problem)
    await delivery.settle(delivery.end("failed", ReplyFacts(body=body or None, error=message)))
    return await delivery.break_off(problem)
