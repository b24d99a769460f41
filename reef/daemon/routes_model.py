"""The model API: who is calling and for what is found out here, the call itself is the gateway's."""

from __future__ import annotations

from urllib.parse import unquote

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.guard import EXTRA_HEADERS
from reef.daemon.house import house_of
from reef.daemon.naming import asked_name, asked_scenario, caller_of
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Handler, Route
from reef.errors import NotFound
from reef.gateway.call import Call
from reef.gateway.dialect import Dialect
from reef.gateway.dialects import (
    CHAT_DIALECT,
    MESSAGES_DIALECT,
    RESPONSES_DIALECT,
    TOKEN_COUNT_DIALECT,
)
from reef.records.writer import RecordingFailed


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """`POST /v1/chat/completions`: a new scenario name makes the scenario, visibly."""
    return await _answer(request, CHAT_DIALECT)


async def responses(request: web.Request) -> web.StreamResponse:
    """`POST /v1/responses`: the same in OpenAI's newer format."""
    return await _answer(request, RESPONSES_DIALECT)


async def messages(request: web.Request) -> web.StreamResponse:
    """`POST /v1/messages`: the same in Anthropic's format."""
    return await _answer(request, MESSAGES_DIALECT)


async def count_tokens(request: web.Request) -> web.StreamResponse:
    """`POST /v1/messages/count_tokens`: recorded, but never a turn; estimated where the model server cannot count."""
    return await _answer(request, TOKEN_COUNT_DIALECT)


async def models(request: web.Request) -> web.StreamResponse:
    """`GET /v1/models`: the engine's own list."""
    house = house_of(request)
    return await house.gateway.models(request, house.engines.of(asked_scenario(request).engine))


async def models_elsewhere(request: web.Request) -> web.StreamResponse:
    """`GET /api/v1/models`: the same list, where some agents look for it."""
    return await models(request)


async def model(request: web.Request) -> web.StreamResponse:
    """`GET /v1/models/<name>`: one model; names may hold a slash."""
    house = house_of(request)
    name = request.rel_url.raw_path.partition("/v1/models/")[2]
    if any(part in (".", "..") for part in unquote(name).split("/")):
        raise NotFound(f"there is no model {name[:100]!r}", "reef status")
    return await house.gateway.models(request, house.engines.of(asked_scenario(request).engine), name)


async def root(request: web.Request) -> web.Response:
    """`HEAD /`: some agents look whether anybody is there before their first call."""
    return web.Response()


async def embeddings(request: web.Request) -> web.StreamResponse:
    """`POST /v1/embeddings`, unrecorded."""
    return await _pass(request, "/embeddings")


async def images(request: web.Request) -> web.StreamResponse:
    """`POST /v1/images`, unrecorded."""
    return await _pass(request, "/images")


async def images_generations(request: web.Request) -> web.StreamResponse:
    """`POST /v1/images/generations`, unrecorded."""
    return await _pass(request, "/images/generations")


async def images_edits(request: web.Request) -> web.StreamResponse:
    """`POST /v1/images/edits`, unrecorded."""
    return await _pass(request, "/images/edits")


async def images_variations(request: web.Request) -> web.StreamResponse:
    """`POST /v1/images/variations`, unrecorded."""
    return await _pass(request, "/images/variations")


async def speech(request: web.Request) -> web.StreamResponse:
    """`POST /v1/audio/speech`, unrecorded."""
    return await _pass(request, "/audio/speech")


async def decisions(request: web.Request) -> web.StreamResponse:
    """`POST /v1/decisions`, unrecorded."""
    return await _pass(request, "/decisions")


async def _answer(request: web.Request, dialect: Dialect) -> web.StreamResponse:
    house, caller = house_of(request), caller_of(request)
    try:
        scenario = await _scenario(request)
    except RecordingFailed as error:
        # Like any other call while the store cannot be written, the one that would make a scenario is answered.
        call = Call(asked_name(request), caller.source, unrecorded=error.message)
        return await house.gateway.relay(request, call, house.engines.of(None), dialect)
    head = house.publisher.head_now(scenario.name)
    session = caller.session
    installed = session.version if session is not None else None
    call = Call(
        scenario=scenario.name,
        source=caller.source,
        session=session.key if session is not None else None,
        adapter=session.adapter if session is not None else None,
        version=installed if installed is not None else head.number if head else None,
        release_id=head.release_id if head else None,
        rules=await house.rules.of(house, session) if session is not None else None,
    )
    return await house.gateway.relay(request, call, house.engines.of(scenario.engine), dialect)


async def _pass(request: web.Request, route: str) -> web.StreamResponse:
    house = house_of(request)
    scenario = await _scenario(request)
    engine = house.engines.multimodal or house.engines.of(scenario.engine)
    return await house.gateway.unrecorded_relay(request, engine, route)


async def _scenario(request: web.Request) -> Scenario:
    """The scenario of a model call; one that is new is made, and the reply says so."""
    scenario, created = await house_of(request).scenarios.for_call(asked_name(request))
    if created:
        request[EXTRA_HEADERS] = {"x-reef-scenario-created": "1"}
    return scenario


def _route(method: str, path: str, handler: Handler, form: bool = False) -> Route:
    return Route(method, path, handler, Access.OPEN, session=True, in_path=True, form=form)


ROUTES = [
    _route("POST", "/v1/chat/completions", chat_completions),
    _route("POST", "/v1/responses", responses),
    _route("POST", "/v1/messages", messages),
    _route("POST", "/v1/messages/count_tokens", count_tokens),
    _route("GET", "/v1/models", models),
    _route("GET", "/api/v1/models", models_elsewhere),
    _route("GET", "/v1/models/{name:.+}", model),
    _route("POST", "/v1/embeddings", embeddings),
    _route("POST", "/v1/images", images),
    _route("POST", "/v1/images/generations", images_generations),
    _route("POST", "/v1/images/edits", images_edits, form=True),
    _route("POST", "/v1/images/variations", images_variations, form=True),
    _route("POST", "/v1/audio/speech", speech),
    _route("POST", "/v1/decisions", decisions),
    _route("HEAD", "/", root),
]
