"""Asks: queue one, see how far it is, list, cancel."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.asking import read_wish
from reef.daemon.house import House, house_of
from reef.daemon.naming import asked_scenario, caller_of, check_session, scenario_filter
from reef.daemon.replies import json_body, json_reply
from reef.daemon.scenarios import require_learning
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound
from reef.ids import is_id
from reef.records import rows

Json = dict[str, Any]

MEANINGS = {
    "queued": "it waits for its turn; one step runs at a time in a scenario",
    "proposing": "the change is being written",
    "evaluating": "the change is being checked with the real agent",
    "settling": "the decision is made and is being stored",
    "published": "the change is served now",
    "pending": "the change is ready and waits for the person",
    "rejected": "a check said no; what is served did not change",
    "skipped": "there was nothing to change",
    "failed": "the step did not get to a decision; what is served did not change",
    "cancelled": "somebody cancelled it; what is served did not change",
}


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
            "page_path": f"/reef/harness/requests/{ask}/progress",
            "number": number,
        }
    )


async def progress(request: web.Request) -> web.Response:
    """`GET /reef/harness/requests/{id}/progress`: how far an ask is, with the activity of its step."""
    house = house_of(request)
    ask = await _find(house, request.match_info["id"])
    check_session(request, ask["scenario"])
    step = None
    if ask["step"] is not None:
        step = await house.reading(lambda reader: reader.step(ask["scenario"], ask["step"]))
    state = ask["state"]
    if state == "running":
        state = house.supervisor.phase(ask["scenario"], ask["step"]) or "settling"
    return json_reply(
        {
            "request_id": ask["id"],
            "number": ask["number"],
            "scenario": ask["scenario"],
            "settled": ask["state"] not in ("queued", "running"),
            "state": state,
            "meaning": await _meaning(house, ask, state),
            "step": ask["step"],
            "version": ask["version"],
            "reason": ask["reason"],
            "policy": step["policy"] if step else None,
            "started_at": step["started_at"] if step else None,
            "activity": step["activity"] if step else [],
            "evaluation": step["evaluation"] if step else None,
        }
    )


async def list_asks(request: web.Request) -> web.Response:
    """`GET /reef/asks?scenario=`: newest first."""
    house = house_of(request)
    scenario = scenario_filter(request)
    return json_reply({"asks": await house.reading(lambda reader: reader.asks(scenario))})


async def show_ask(request: web.Request) -> web.Response:
    """`GET /reef/asks/{id}?scenario=`: by id, or by number within the scenario."""
    house = house_of(request)
    return json_reply(await _find(house, request.match_info["id"], request.query.get("scenario")))


async def cancel_ask(request: web.Request) -> web.Response:
    """`POST /reef/asks/{id}/cancel`: a queued ask is taken out, a running one ends with its step."""
    house = house_of(request)
    ask = await _find(house, request.match_info["id"], request.query.get("scenario"))
    await house.supervisor.cancel_ask(ask["id"])
    return json_reply(await _find(house, ask["id"]))


async def _meaning(house: House, ask: Json, state: str) -> str:
    """What `state` means now: the version of an ask may have been decided on, replaced or rolled back since."""
    head = house.publisher.head_now(ask["scenario"])
    if state not in ("published", "pending") or ask["version"] is None or head is None:
        return MEANINGS[state]
    made = await house.reading(lambda reader: reader.version(ask["scenario"], ask["version"]))
    if made["content_id"] == head.content_id:
        return MEANINGS["published"]
    if made["state"] == "pending":
        return MEANINGS["pending"]
    return f"it was published as v{made['version']}; v{head.number} is served now"


async def _find(house: House, reference: str, scenario: str | None = None) -> Json:
    if is_id(reference):
        found: Json = await house.reading(lambda reader: reader.ask(reference))
        return found
    number = reference.removeprefix("#")
    if number.isascii() and number.isdigit():
        name = house.scenarios.known(scenario or "default", archived=True).name
        for ask in await house.reading(lambda reader: reader.asks(name)):
            if ask["number"] == int(number[:10]):
                return dict(ask)
        raise NotFound(f"scenario {name!r} has no ask {reference}", f"reef asks list --scenario {name}")
    raise NotFound(f"there is no ask {reference[:40]!r}", "reef asks list")


ROUTES = [
    Route("POST", "/reef/train", queue_ask, Access.OPEN, session=True, in_path=True),
    Route("GET", "/reef/harness/requests/{id}/progress", progress, Access.OPEN, session=True),
    Route("GET", "/reef/asks", list_asks),
    Route("GET", "/reef/asks/{id}", show_ask),
    Route("POST", "/reef/asks/{id}/cancel", cancel_ask),
]
