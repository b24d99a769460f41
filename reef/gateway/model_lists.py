"""Model lists, as agents ask for them: the upstream's own, or the one model that the engine knows."""

from __future__ import annotations

import time
from typing import Any

import aiohttp
from aiohttp import web

from reef.engines.engine import CHAT, MESSAGES, Engine
from reef.errors import ReefError
from reef.gateway import headers
from reef.gateway.chat import ChatDialect
from reef.gateway.dialect import Dialect, problem_of
from reef.gateway.lenient import dump, parse
from reef.gateway.messages import MessagesDialect
from reef.gateway.refusing import refusal
from reef.gateway.upstream import UpstreamCalls

ENGINE_WAIT_S = 10.0
"""How long a list waits for an engine that is still starting: who asks for one wants it at once."""
_ABSENT = (404, 405, 501)


async def list_models(
    upstream: UpstreamCalls, request: web.Request, engine: Engine, name: str | None = None
) -> web.StreamResponse:
    """The list, or the model called `name`, in the shape that the client reads. Nothing is recorded.

    `name` is percent-encoded, as it came. Anthropic's clients send `anthropic-version`.
    """
    for_anthropic = "anthropic-version" in request.headers
    dialect: Dialect = MessagesDialect() if for_anthropic else ChatDialect()
    route = "/models" if name is None else f"/models/{name}"
    try:
        await engine.ready(ENGINE_WAIT_S)
        async with upstream.get(engine, route, request, MESSAGES if for_anthropic else CHAT) as reply:
            body = await reply.read()
            if reply.status not in _ABSENT or (name is not None and name != engine.model):
                shaped = _for_anthropic(body) if for_anthropic and reply.status == 200 else body
                return web.Response(status=reply.status, headers=headers.returned(reply.headers), body=shaped)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return refusal(dialect, upstream.problem(engine, error))
    except ReefError as error:
        return refusal(dialect, problem_of(error))
    found = [{"id": engine.model, "object": "model", "created": 0, "owned_by": engine.name}] if engine.model else []
    raw = dump({"object": "list", "data": found} if name is None else found[0])
    return web.Response(body=_for_anthropic(raw) if for_anthropic else raw, content_type="application/json")


def _for_anthropic(body: bytes) -> bytes:
    """OpenAI's list with what Anthropic's has beside it; a body that is another shape, or has it, stays as it is."""
    try:
        found = parse(body)
    except ValueError:
        return body
    if not isinstance(found, dict) or "has_more" in found or found.get("type") == "model":
        return body
    if not isinstance(found.get("data"), list):
        return dump({**found, **_card(found)}) if isinstance(found.get("id"), str) else body
    data = [{**item, **_card(item)} for item in found["data"] if isinstance(item, dict) and item.get("id")]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return dump({**found, "data": data, "has_more": False, **ends})


def _card(item: dict[str, Any]) -> dict[str, Any]:
    created = item.get("created")
    seconds = created if isinstance(created, int) and 0 <= created < 2**40 else 0
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return {"type": "model", "display_name": str(item["id"]), "created_at": at}
