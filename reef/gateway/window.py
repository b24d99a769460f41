"""A prompt that is longer than the window of reef's own model, refused in reef's own words.

The engine counts the prompt before it generates anything; what it says then is rewritten. What somebody else's server
says goes on unchanged.
"""

from __future__ import annotations

import aiohttp
from aiohttp import web

from reef.engines.engine import Engine
from reef.gateway import headers
from reef.gateway.delivery import Delivery
from reef.gateway.dialect import Problem
from reef.gateway.whole import deliver_body
from reef.gateway.wire import Reply

CODE = "context_length_exceeded"
"""The vendors' own word for it: an agent that knows it does not try again."""


def may_be_one(engine: Engine, reply: Reply) -> bool:
    """Whether the reply has to be read before it goes on."""
    return engine.own and reply.status == 400


async def deliver_refusal(delivery: Delivery, engine: Engine, reply: Reply) -> web.StreamResponse:
    """Answer with the engine's refusal: in reef's words where the prompt is too long, else as it is."""
    try:
        body = await reply.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return await delivery.refused(Problem(502, "the model server broke off", "api_error", "upstream_broke_off"))
    said = engine.too_long(body)
    if said is None:
        return await deliver_body(delivery, reply.status, headers.returned(reply.headers), body)
    return await delivery.refused(Problem(400, said, "invalid_request_error", CODE))
