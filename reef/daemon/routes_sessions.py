"""Sessions: list what was run, open one for a wrapper, end one."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.naming import caller_of, scenario_filter
from reef.daemon.replies import json_body, json_reply, text_field, whole_number
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.ids import to_blob

_MOST = 1000


async def list_sessions(request: web.Request) -> web.Response:
    """`GET /reef/sessions?cwd&scenario&limit&kind`: newest first; `kind` is `agent` or `step`.

    An agent's session sees itself and nothing else.
    """
    house, query = house_of(request), request.query
    own = caller_of(request).session
    if own is not None:
        return json_reply({"sessions": [await house.reading(lambda reader: reader.session(own.id))]})
    limit = whole_number(query.get("limit"), "limit", 20, 1, _MOST) or 20
    scenario = scenario_filter(request)
    cwd = query.get("cwd") or None
    kind = query.get("kind") or "agent"
    if kind not in ("agent", "step"):
        raise InvalidInput("kind is neither agent nor step")
    found = await house.reading(lambda reader: reader.sessions(cwd=cwd, scenario=scenario, limit=limit, kind=kind))
    return json_reply({"sessions": found})


async def show_session(request: web.Request) -> web.Response:
    """`GET /reef/sessions/{id}`: the session of that id or key as one conversation."""
    name, scenario = request.match_info["id"], scenario_filter(request)
    return json_reply(await house_of(request).reading.apart(lambda reader: reader.talk(name, scenario)))


async def open_session(request: web.Request) -> web.Response:
    """`POST /reef/sessions`: a token bound to scenario, adapter, installed version and the life of process `pid`."""
    house = house_of(request)
    body = await json_body(request)
    scenario = house.scenarios.known(body.get("scenario"))
    adapter = text_field(body, "adapter", required=True, longest=64)
    cwd = text_field(body, "cwd", longest=4096)
    pid, version = body.get("pid"), body.get("version")
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        raise InvalidInput("'pid' is not the number of a process")
    if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
        raise InvalidInput("'version' is not the number of a version")
    if cwd is not None and not Path(cwd).is_absolute():
        raise InvalidInput("'cwd' is not an absolute path")
    session, token = await house.sessions.open(scenario.name, "agent", pid, adapter, version, cwd)
    return json_reply({"session": session.id, "token": token, "scenario": scenario.name}, 201)


async def close_session(request: web.Request) -> web.Response:
    """`DELETE /reef/sessions/{id}`: its token opens nothing from now on."""
    id = request.match_info["id"]
    to_blob(id)
    session = await house_of(request).sessions.close(id)
    return json_reply({"session": session.id, "closed": True})


ROUTES = [
    Route("GET", "/reef/sessions", list_sessions, session=True),
    Route("POST", "/reef/sessions", open_session),
    Route("GET", "/reef/sessions/{id}", show_session),
    Route("DELETE", "/reef/sessions/{id}", close_session),
]
