"""The model API: who is calling and for what is found out here, the call itself is the gateway's."""

from __future__ import annotations

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.guard import EXTRA_HEADERS
from reef.daemon.house import house_of
from reef.daemon.naming import asked_name, asked_scenario, caller_of
from reef.daemon.table import Route
from reef.gateway.call import Call
from reef.records.writer import RecordingFailed


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """`POST /v1/chat/completions`: a new scenario name makes the scenario, visibly."""
    house, caller = house_of(request), caller_of(request)
    name = asked_name(request)
    try:
        scenario, created = await house.scenarios.for_call(name)
    except RecordingFailed as error:
        # Like any other call while the store cannot be written, the one that would make a scenario is answered.
        call = Call(name, caller.source, unrecorded=error.message)
        return await house.gateway.relay(request, call, house.engines.of(None))
    if created:
        request[EXTRA_HEADERS] = {"x-reef-scenario-created": "1"}
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
    )
    return await house.gateway.relay(request, call, house.engines.of(scenario.engine))


async def models(request: web.Request) -> web.StreamResponse:
    """`GET /v1/models`: the engine's own list."""
    house = house_of(request)
    return await house.gateway.models(request, house.engines.of(asked_scenario(request).engine))


ROUTES = [
    Route("POST", "/v1/chat/completions", chat_completions, Access.OPEN, session=True, in_path=True),
    Route("GET", "/v1/models", models, Access.OPEN, session=True, in_path=True),
]
