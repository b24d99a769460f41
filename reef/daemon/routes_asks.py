"""Asks: queue one, see how far it is, list, cancel."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.asking import read_wish
from reef.daemon.asks import find_ask, meaning_of
from reef.daemon.house import house_of
from reef.daemon.naming import asked_scenario, caller_of, check_session, scenario_filter
from reef.daemon.replies import json_body, json_reply
from reef.daemon.routes_pages import ask_page_path, ask_sections
from reef.daemon.scenarios import require_learning
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.ids import is_id
from reef.records import rows

Json = dict[str, Any]
_STEP_RECORD = ("number", "recipe", "proposer", "policy", "state", "started_at", "ended_at", "version")


async def queue_ask(request: web.Request) -> web.Response:
    """`POST /reef/train`: 200 means durably queued, not done."""
    house, scenario, caller = house_of(request), asked_scenario(request), caller_of(request)
    body = await json_body(request)
    require_learning(scenario)
    house.publisher.require(scenario.name)
    wish = read_wish(body)
    given = body.get("agent_record_id")
    if given is not None and not is_id(given):
        raise InvalidInput("'agent_record_id' is not an id of 32 hex digits")
    ask, number, _ = await house.writer.write(
        lambda conn: rows.add_ask(
            conn, scenario.name, wish.text, id=given, source=caller.source, session=wish.session,
            release_id=wish.release_id, requires=wish.requires, client=wish.client, content_hash=wish.content_hash,
        )
    )  # fmt: skip
    house.supervisor.wake(scenario.name)
    return json_reply(
        {
            "agent_record_id": ask,
            "scenario": scenario.name,
            "request_type": "train",
            "page_path": ask_page_path(request, scenario.name, ask),
            "number": number,
        }
    )


async def progress(request: web.Request) -> web.Response:
    """`GET /reef/harness/requests/{id}/progress`: how far an ask is, with the activity of its step."""
    house = house_of(request)
    ask = await find_ask(house, request.match_info["id"])
    check_session(request, ask["scenario"])
    step = None
    if ask["step"] is not None:
        step = await house.reading(lambda reader: reader.step(ask["scenario"], ask["step"]))
    state, meaning = await meaning_of(house, ask)
    return json_reply(
        {
            "request_id": ask["id"],
            "number": ask["number"],
            "scenario": ask["scenario"],
            "settled": ask["state"] not in ("queued", "running"),
            "state": state,
            "meaning": meaning,
            "step": ask["step"],
            "version": ask["version"],
            "reason": ask["reason"],
            "policy": step["policy"] if step else None,
            "started_at": step["started_at"] if step else None,
            "episodes_total": len(step["episodes"]) if step else 0,
            "step_record": {name: step[name] for name in _STEP_RECORD} if step else None,
            "activity": step["activity"] if step else [],
            "checks": _checks(step["evaluation"]) if step else [],
            "evaluation": step["evaluation"] if step else None,
        }
    )


def _checks(evaluation: Json | None) -> list[Json]:
    """What was looked at, one after the other: name, status, one line."""
    groups = (evaluation or {}).get("groups") or []
    return [{name: group.get(name) for name in ("name", "status", "detail")} for group in groups]


async def list_asks(request: web.Request) -> web.Response:
    """`GET /reef/asks?scenario=`: newest first."""
    house = house_of(request)
    scenario = scenario_filter(request)
    return json_reply({"asks": await house.reading(lambda reader: reader.asks(scenario))})


async def show_ask(request: web.Request) -> web.Response:
    """`GET /reef/asks/{id}?scenario=`: by id, or by number within the scenario."""
    house = house_of(request)
    ask = await find_ask(house, request.match_info["id"], request.query.get("scenario"))
    more = {"page": await ask_sections(house, ask), "page_path": ask_page_path(request, ask["scenario"], ask["id"])}
    return json_reply(ask | more)


async def cancel_ask(request: web.Request) -> web.Response:
    """`POST /reef/asks/{id}/cancel`: a queued ask is taken out, a running one ends with its step."""
    house = house_of(request)
    ask = await find_ask(house, request.match_info["id"], request.query.get("scenario"))
    await house.supervisor.cancel_ask(ask["id"])
    return json_reply(await find_ask(house, ask["id"]))


ROUTES = [
    Route("POST", "/reef/train", queue_ask, Access.OPEN, session=True, in_path=True),
    Route("GET", "/reef/harness/requests/{id}/progress", progress, Access.OPEN, session=True),
    Route("GET", "/reef/asks", list_asks),
    Route("GET", "/reef/asks/{id}", show_ask),
    Route("POST", "/reef/asks/{id}/cancel", cancel_ask),
]
