"""Versions: lists, one version with its files, differences, and the decisions to promote and to roll back."""

from __future__ import annotations

import asyncio
from typing import Any, TypeGuard

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.house import house_of
from reef.daemon.named_versions import catalog, find_content, find_version
from reef.daemon.naming import asked_scenario, caller_of, scenario_in_path
from reef.daemon.replies import json_body, json_reply
from reef.daemon.routes_pages import version_page_path, version_sections
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.harness.tree import entry_of
from reef.pinned import pinned
from reef.versions.diff import compare

Json = dict[str, Any]


async def releases_newest_first(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/releases`."""
    return await _releases(request, scenario_in_path(request), newest_first=True)


async def releases_oldest_first(request: web.Request) -> web.Response:
    """`GET /reef/harness/releases`."""
    return await _releases(request, asked_scenario(request), newest_first=False)


async def _releases(request: web.Request, scenario: Scenario, newest_first: bool) -> web.Response:
    house, caller = house_of(request), caller_of(request)
    found = await catalog(house, scenario.name)
    kept = await house.reading(lambda reader: reader.pins(scenario.name))
    metrics = await house.reading(lambda reader: {row["number"]: row["metrics"] for row in reader.steps(scenario.name)})
    adapter = caller.session.adapter if caller.session else None
    stays = pinned(kept, adapter or scenario.adapter)
    for version in found:
        version["page_path"] = version_page_path(request, scenario.name, version["version"])
        # An agent's session is told what stays installed for that agent, everybody else what is pinned at all.
        pins = [stays] if adapter else [pin["version"] for pin in kept]
        version["pinned"] = version["version"] in pins
        if version["step"] is not None:
            version["metrics"] = metrics.get(version["step"]) or {}
    if caller.kind in ("person", "token"):
        asks = await house.reading(lambda reader: reader.asks(scenario.name))
        for version in found:
            version["asks"] = [
                {"number": ask["number"], "text": ask["text"]}
                for ask in asks
                if version["step"] is not None and ask["step"] == version["step"]
            ]
    return json_reply(
        {
            "scenario": scenario.name,
            "releases": found[::-1] if newest_first else found,
            "pins": [{"adapter": pin["adapter"], "version": pin["version"]} for pin in kept],
            "pinned": stays,
        }
    )


async def show_version(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/versions/{number}`: the version, its files and its step."""
    house, scenario = house_of(request), scenario_in_path(request)
    version = await find_version(house, scenario.name, request.match_info["number"])
    page = await version_sections(house, scenario.name, version, await catalog(house, scenario.name))
    files = await asyncio.to_thread(house.repository.files, version["release_id"])
    step = version["step"]
    row = await house.reading(lambda reader: reader.step(scenario.name, step)) if step is not None else None
    shown = {path: text.decode("utf-8", "replace") for path, text in files.items()}
    more = {"page": page, "page_path": version_page_path(request, scenario.name, version["version"])}
    return json_reply(version | more | {"files": shown, "step_row": row})


async def show_difference(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/diff?from=v1&to=s12`: any two of version, step candidate and `base`."""
    house, scenario = house_of(request), scenario_in_path(request)
    names = [request.query.get("from"), request.query.get("to")]
    if not names[0] or not names[1]:
        raise InvalidInput("the query needs 'from' and 'to'", "reef versions diff v1 v2")
    old, before = await find_content(house, scenario.name, names[0])
    new, after = await find_content(house, scenario.name, names[1])

    def work() -> Json:
        files = [_with_entry(file.to_json()) for file in compare(house.repository, before, after)]
        return {"from": _number(old), "to": _number(new), "from_release_id": before, "to_release_id": after} | {
            "files": files
        }

    return json_reply(await asyncio.to_thread(work))


def _number(shown: str) -> int | str:
    """A version's number, as this route has always answered; `s12` for a candidate."""
    return int(shown[1:]) if shown.startswith("v") else shown


def _with_entry(file: Json) -> Json:
    entry = entry_of(file["path"])
    return file | {"entry": None if entry is None else {"kind": entry[0], "id": entry[1]}}


async def promote(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/promote`."""
    house, scenario = house_of(request), scenario_in_path(request)
    target, expected = _decision(await json_body(request))
    return _decided(await house.upgrading.promote(scenario.name, target, expected))


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
