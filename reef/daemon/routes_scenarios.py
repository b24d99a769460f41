"""Scenarios: list, create, archive and bring back."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.engine_room import EMBEDDED, takes_a_key
from reef.daemon.house import House, house_of
from reef.daemon.naming import caller_of
from reef.daemon.replies import json_body, json_reply, text_field
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import Forbidden, InvalidInput


async def list_scenarios(request: web.Request) -> web.Response:
    """`GET /reef/scenarios?archived=1`: those in use, or the archived ones."""
    house, archived = house_of(request), request.query.get("archived", "0")
    if archived not in ("0", "1"):
        raise InvalidInput("'archived' is 0 or 1", "reef scenarios list --archived")
    wanted = archived == "1"
    rows = [_row(house, scenario) for scenario in house.scenarios.all() if scenario.archived == wanted]
    return json_reply({"scenarios": rows})


async def create_scenario(request: web.Request) -> web.Response:
    """`POST /reef/scenarios`: 201 when it was made, 200 when it was there."""
    house = house_of(request)
    body = await json_body(request)
    if body.get("name") is None:
        raise InvalidInput("the body needs 'name'", 'use {"name": "my-harness"}')
    engine = _engine(body.get("engine"))
    if engine not in (None, EMBEDDED) and takes_a_key(engine) and caller_of(request).kind != "person":
        # Whoever names a variable and an address would be sent that variable's value, and calls to a vendor cost money.
        raise Forbidden("an engine with a key from the environment needs the person key", "reef scenarios create")
    scenario, created = await house.scenarios.create(
        body["name"], text_field(body, "recipe"), engine, text_field(body, "adapter")
    )
    head = house.publisher.head_now(scenario.name)
    reply = {
        "scenario": scenario.name,
        "release_id": head.release_id if head else None,
        "content_id": head.content_id if head else None,
        "config": {"recipe": scenario.recipe, "adapter": scenario.adapter, "engine": scenario.engine}
        | ({"recipe_config": scenario.config} if scenario.config else {}),
    }
    return json_reply(reply, 201 if created else 200)


async def archive_scenario(request: web.Request) -> web.Response:
    """`DELETE /reef/scenarios/{scenario}`: out of use, nothing lost; 409 while a step of it runs."""
    scenario = await house_of(request).scenarios.archive(request.match_info["scenario"])
    return json_reply({"scenario": scenario.name, "archived": True})


async def restore_scenario(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/restore`: an archived scenario is in use again, with all that it holds."""
    house = house_of(request)
    scenario = await house.scenarios.restore(request.match_info["scenario"])
    await house.upgrading.one(scenario.name)
    # What was asked for before it was archived still waits.
    house.supervisor.wake(scenario.name)
    return json_reply({"scenario": scenario.name, "archived": False})


def _row(house: House, scenario: Scenario) -> dict[str, Any]:
    head = house.publisher.head_now(scenario.name)
    problem = house.publisher.problem_now(scenario.name)
    return {
        "name": scenario.name,
        "recipe": scenario.recipe,
        "adapter": scenario.adapter,
        "engine": scenario.engine,
        "version": head.number if head else None,
        "release_id": head.release_id if head else None,
        "created_at": scenario.created_at,
        "state": "archived"
        if scenario.archived
        else "broken"
        if problem
        else "ready"
        if scenario.ready
        else "creating",
        "problem": problem,
    }


def _engine(value: object) -> str | None:
    """`embedded`, or an upstream as an object, as it is stored."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True)


ROUTES = [
    Route("GET", "/reef/scenarios", list_scenarios, Access.OPEN),
    Route("POST", "/reef/scenarios", create_scenario, Access.OPEN),
    Route("DELETE", "/reef/scenarios/{scenario}", archive_scenario, Access.DECIDING),
    Route("POST", "/reef/scenarios/{scenario}/restore", restore_scenario, Access.DECIDING),
]
