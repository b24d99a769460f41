"""Steps: list, one with its episodes and activity, cancel."""

from __future__ import annotations

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.naming import scenario_filter, scenario_in_path
from reef.daemon.replies import json_reply, whole_number
from reef.daemon.table import Route


async def list_steps(request: web.Request) -> web.Response:
    """`GET /reef/steps?scenario=`: newest first."""
    house = house_of(request)
    scenario = scenario_filter(request)
    return json_reply({"steps": await house.reading(lambda reader: reader.steps(scenario))})


async def show_step(request: web.Request) -> web.Response:
    """`GET /reef/steps/{scenario}/{number}`."""
    house, scenario, number = house_of(request), scenario_in_path(request), _number(request)
    return json_reply(await house.reading(lambda reader: reader.step(scenario.name, number)))


async def cancel_step(request: web.Request) -> web.Response:
    """`POST /reef/steps/{scenario}/{number}/cancel`: ends its process group."""
    house, scenario, number = house_of(request), scenario_in_path(request), _number(request)
    await house.supervisor.cancel_step(scenario.name, number)
    return json_reply(await house.reading(lambda reader: reader.step(scenario.name, number)))


def _number(request: web.Request) -> int:
    return whole_number(request.match_info["number"], "the step", 0, 1, 2**31) or 0


ROUTES = [
    Route("GET", "/reef/steps", list_steps),
    Route("GET", "/reef/steps/{scenario}/{number}", show_step),
    Route("POST", "/reef/steps/{scenario}/{number}/cancel", cancel_step),
]
