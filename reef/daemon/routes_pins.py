"""Pins: which version of a scenario stays installed, whatever is served."""

from __future__ import annotations

import sqlite3
from typing import Any

from aiohttp import web

from reef import events
from reef.daemon.access import Access
from reef.daemon.house import House, house_of
from reef.daemon.named_versions import find_version
from reef.daemon.naming import scenario_in_path
from reef.daemon.replies import json_body, json_reply, text_field
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound, Refused
from reef.harness.adapter import load_adapter
from reef.pinned import pinned
from reef.records import pins, rows

Json = dict[str, Any]


async def list_pins(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/pins`."""
    house, scenario = house_of(request), scenario_in_path(request)
    return json_reply({"scenario": scenario.name, "pins": await _pins(house, scenario.name)})


async def pin(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/pin`: `{"version", "adapter"?}`; without an adapter it is for every agent."""
    house, scenario = house_of(request), scenario_in_path(request)
    body = await json_body(request)
    name = body.get("version")
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InvalidInput("the body needs 'version'", 'use {"version": "v2"}')
    found = await find_version(house, scenario.name, str(name))
    if found["state"] != "published":
        raise Refused(
            f"v{found['version']} of scenario {scenario.name} is {found['state']}, and only a published one is pinned",
            f"reef versions show v{found['version']} -s {scenario.name}",
        )
    adapter = _adapter(house, text_field(body, "adapter", longest=64))
    number = int(found["version"])

    def write(conn: sqlite3.Connection) -> None:
        pins.pin(conn, scenario.name, adapter, number)
        rows.add_event(conn, events.VERSION_PINNED, scenario.name, {"version": number, "adapter": adapter}, "pinned")

    await house.writer.write(write)
    return json_reply({"scenario": scenario.name, "pins": await _pins(house, scenario.name)})


async def unpin(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/unpin`: `{"adapter"?}`; without one every pin of the scenario goes."""
    house, scenario = house_of(request), scenario_in_path(request)
    adapter = _adapter(house, text_field(await json_body(request, required=False), "adapter", longest=64))

    def write(conn: sqlite3.Connection) -> bool:
        gone = pins.unpin(conn, scenario.name, adapter)
        if gone:
            rows.add_event(conn, events.VERSION_UNPINNED, scenario.name, {"adapter": adapter}, "unpinned")
        return gone

    if not await house.writer.write(write):
        what = f" for {adapter}" if adapter else ""
        raise NotFound(
            f"no version of scenario {scenario.name} is pinned{what}", f"reef versions list -s {scenario.name}"
        )
    return json_reply({"scenario": scenario.name, "pins": await _pins(house, scenario.name)})


async def to_install(house: House, scenario: str, adapter: str, asked: int | str | None, head: int) -> Json:
    """The version that an installation is about: as asked, else the pinned one, else the head.

    Raises NotFound, and Refused when another version than the pinned one is asked for.
    """
    kept = pinned(await house.reading(lambda reader: reader.pins(scenario)), adapter)
    if asked is None:
        return await find_version(house, scenario, str(kept or head))
    found = await find_version(house, scenario, str(asked))
    if kept is not None and found["version"] != kept:
        raise Refused(
            f"scenario {scenario} is pinned to v{kept} for {adapter}, so v{found['version']} is not installed",
            f"reef versions unpin -s {scenario}, or for one session: reef versions try v{found['version']}"
            f" -s {scenario}",
        )
    return found


def _adapter(house: House, name: str | None) -> str | None:
    return None if name is None else load_adapter(name, house.paths).name


async def _pins(house: House, scenario: str) -> list[Json]:
    found = await house.reading(lambda reader: reader.pins(scenario))
    return [{"adapter": row["adapter"], "version": row["version"], "at": row["at"]} for row in found]


ROUTES = [
    Route("GET", "/reef/scenarios/{scenario}/pins", list_pins),
    Route("POST", "/reef/scenarios/{scenario}/pin", pin, Access.DECIDING),
    Route("POST", "/reef/scenarios/{scenario}/unpin", unpin, Access.DECIDING),
]
