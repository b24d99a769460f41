"""Versions: lists, one version with its files, differences, and the decisions to promote and to roll back."""

from __future__ import annotations

import asyncio
from typing import Any, TypeGuard

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.house import House, house_of
from reef.daemon.naming import asked_scenario, caller_of, scenario_in_path
from reef.daemon.replies import json_body, json_reply
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound
from reef.ids import version_number
from reef.versions.diff import compare

Json = dict[str, Any]


async def releases_newest_first(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/releases`."""
    return await _releases(request, scenario_in_path(request), newest_first=True)


async def releases_oldest_first(request: web.Request) -> web.Response:
    """`GET /reef/harness/releases`."""
    return await _releases(request, asked_scenario(request), newest_first=False)


async def _releases(request: web.Request, scenario: Scenario, newest_first: bool) -> web.Response:
    house = house_of(request)
    found = await catalog(house, scenario.name)
    if caller_of(request).kind in ("person", "token"):
        asks = await house.reading(lambda reader: reader.asks(scenario.name))
        for version in found:
            version["asks"] = [
                {"number": ask["number"], "text": ask["text"]}
                for ask in asks
                if version["step"] is not None and ask["step"] == version["step"]
            ]
    return json_reply({"scenario": scenario.name, "releases": found[::-1] if newest_first else found})


async def catalog(house: House, scenario: str) -> list[Json]:
    """Every version of a scenario, oldest first, in the shape that all routes show."""
    found = await house.reading(lambda reader: reader.versions(scenario))
    return sorted((dict(version) for version in found), key=lambda version: int(version["version"]))


async def find_version(house: House, scenario: str, name: str) -> Json:
    """The version called `v3`, `3` or by its release id. Raises NotFound with the newest."""
    found = await catalog(house, scenario)
    wanted = name if len(name) == 40 else version_number(name)
    for version in found:
        if wanted in (version["version"], version["release_id"]):
            return version
    newest = f" (newest: v{found[-1]['version']})" if found else ""
    shown = name[:12] if isinstance(wanted, str) else f"v{wanted}"
    raise NotFound(f"scenario {scenario} has no version {shown}{newest}", "reef versions list")


async def show_version(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/versions/{number}`: the version, its files and its step."""
    house, scenario = house_of(request), scenario_in_path(request)
    version = await find_version(house, scenario.name, request.match_info["number"])
    files = await asyncio.to_thread(house.repository.files, version["release_id"])
    step = version["step"]
    row = await house.reading(lambda reader: reader.step(scenario.name, step)) if step is not None else None
    shown = {path: text.decode("utf-8", "replace") for path, text in files.items()}
    return json_reply(version | {"files": shown, "step_row": row})


async def show_difference(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/diff?from=v1&to=v2`."""
    house, scenario = house_of(request), scenario_in_path(request)
    names = [request.query.get("from"), request.query.get("to")]
    if not names[0] or not names[1]:
        raise InvalidInput("the query needs 'from' and 'to'", "reef versions diff v1 v2")
    old = await find_version(house, scenario.name, names[0])
    new = await find_version(house, scenario.name, names[1])
    changed = await asyncio.to_thread(compare, house.repository, old["release_id"], new["release_id"])
    return json_reply({"from": old["version"], "to": new["version"], "files": [file.to_json() for file in changed]})


async def promote(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/promote`."""
    house, scenario = house_of(request), scenario_in_path(request)
    target, expected = _decision(await json_body(request))
    return _decided(await house.publisher.promote(scenario.name, target, expected))


async def rollback(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/rollback`."""
    house, scenario = house_of(request), scenario_in_path(request)
    target, expected = _decision(await json_body(request))
    return _decided(await house.publisher.rollback(scenario.name, target, expected))


def _decision(body: Json) -> tuple[str | int, str | int | None]:
    target = body.get("version", body.get("release_id"))
    if not _is_version(target):
        raise InvalidInput("the body needs 'version' or 'release_id'", 'use {"version": "v2"}')
    expected = body.get("expected_head")
    if expected is not None and not _is_version(expected):
        raise InvalidInput("'expected_head' is neither a version nor a release id", 'use {"expected_head": "v1"}')
    return target, expected


def _is_version(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _decided(version: Any) -> web.Response:
    return json_reply(
        {
            "scenario": version.scenario,
            "release_id": version.release_id,
            "content_id": version.content_id,
            "version": version.number,
        }
    )


ROUTES = [
    Route("GET", "/reef/scenarios/{scenario}/releases", releases_newest_first, Access.OPEN),
    Route("GET", "/reef/harness/releases", releases_oldest_first, Access.OPEN, session=True, in_path=True),
    Route("GET", "/reef/scenarios/{scenario}/versions/{number}", show_version),
    Route("GET", "/reef/scenarios/{scenario}/diff", show_difference),
    Route("POST", "/reef/scenarios/{scenario}/promote", promote, Access.DECIDING),
    Route("POST", "/reef/scenarios/{scenario}/rollback", rollback, Access.DECIDING),
]
