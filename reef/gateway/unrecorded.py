"""Relays that leave no record: embeddings, images, speech, decisions. The bytes of both sides go on unchanged."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web

from reef.engines.engine import Engine
from reef.errors import ReefError
from reef.gateway import headers
from reef.gateway.dialect import Dialect, Problem, problem_of
from reef.gateway.lenient import parse
from reef.gateway.refusing import refusal
from reef.gateway.sending import Sending, address
from reef.gateway.upstream import UpstreamCalls
from reef.gateway.wire import Reply

_ABSENT = (404, 405, 501)


async def pass_through(
    upstream: UpstreamCalls,
    request: web.Request,
    body: bytes,
    engine: Engine,
    route: str,
    dialect: Dialect,
    wait_s: float,
) -> web.StreamResponse:
    """Send `body` to `route` of `engine` and its reply back as it comes; 501 where there is no such route.

    Raises ConnectionError when the client has gone.
    """
    try:
        await engine.ready(wait_s)
        url = address(engine.url(route, request.rel_url.raw_query_string))
        found = headers.forwarded(request.headers, engine.headers())
        reply = await upstream.post(engine, Sending(url, found, body), [])
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return refusal(dialect, upstream.problem(engine, error))
    except ReefError as error:
        return refusal(dialect, problem_of(error))
    engine.observed(None)
    try:
        if reply.status not in _ABSENT:
            return await _send_on(request, reply)
        said = await reply.read()
        if _is_absent(reply.status, said):
            return refusal(dialect, _no_route(engine, route))
        return web.Response(status=reply.status, headers=headers.returned(reply.headers), body=said)
    except (aiohttp.ClientError, TimeoutError) as error:
        return refusal(dialect, upstream.problem(engine, error))
    finally:
        reply.release()


async def _send_on(request: web.Request, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=headers.returned(reply.headers))
    response.content_length = reply.content_length
    await response.prepare(request)
    try:
        while piece := await reply.content.readany():
            await response.write(piece)
    except (aiohttp.ClientError, TimeoutError):
        return _broken_off(request, response)
    except asyncio.CancelledError:
        _broken_off(request, response)
        raise
    await response.write_eof()
    return response


def _broken_off(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """End a reply so that no client takes it for whole: what has been sent cannot be taken back."""
    response.force_close()
    if request.transport is not None:
        request.transport.close()
    return response


def _is_absent(status: int, body: bytes) -> bool:
    """Whether a reply means that the route is not there, rather than the model that was asked for."""
    try:
        found = parse(body)
    except ValueError:
        return True
    error = found.get("error") if isinstance(found, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return status != 404 or not isinstance(said, str) or "model" not in said.lower()


def _no_route(engine: Engine, route: str) -> Problem:
    message = (
        f"the model server at {engine.base_url} has no {route}"
        " (hint: reef serve --inference.multimodal-url http://127.0.0.1:8080)"
    )
    return Problem(501, message, "not_supported", "not_supported")
