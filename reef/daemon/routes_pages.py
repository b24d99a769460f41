"""Pages for a browser, which can send no key of its own, and the files that the step of a version left.

The daemon hands a page's address out whole (`page_path`). For the person it carries a page key, which opens the pages
of that one scenario and nothing else, and from which nothing can be learned.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from aiohttp import web

from reef.daemon import page_html, page_sections, step_files
from reef.daemon.access import Access
from reef.daemon.asks import find_ask, meaning_of
from reef.daemon.guard import DOOR, PAGE_SCENARIO
from reef.daemon.house import House, house_of
from reef.daemon.named_versions import catalog
from reef.daemon.naming import HEADER, asked_scenario, caller_of
from reef.daemon.replies import json_reply
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import NotFound, Unauthorized
from reef.ids import scenario_name
from reef.versions.diff import compare

Json = dict[str, Any]
_REFRESH_S = 5


def version_page_path(request: web.Request, scenario: str, number: int) -> str:
    """Where the page of a version is, for whoever sent `request`."""
    return f"/reef/harness/releases/{number}/page?{_query(request, scenario)}"


def ask_page_path(request: web.Request, scenario: str, ask: str) -> str:
    """Where the page of an ask is, for whoever sent `request`."""
    return f"/reef/harness/requests/{ask}/page?{_query(request, scenario)}"


def _query(request: web.Request, scenario: str) -> str:
    named = f"scenario={quote(scenario, safe='')}"
    if caller_of(request).kind not in ("person", "token"):
        return named
    return f"{named}&key={request.app[DOOR].page_key(scenario)}"


async def version_page(request: web.Request) -> web.Response:
    """`GET /reef/harness/releases/{step}/page?scenario=&key=`."""
    house, scenario = house_of(request), _scenario(request)
    version, chain = await _version(house, scenario, request.match_info["step"])
    sections = await version_sections(house, scenario.name, version, chain)
    title = f"v{version['version']} of scenario {scenario.name}: {version['state']}"
    return page_html.page(title, sections, version)


async def version_sections(house: House, scenario: str, version: Json, chain: list[Json]) -> list[Json]:
    """What there is to say about a version, for a page and for a terminal."""
    number, parent = version["step"], version["parent_release_id"]
    step = await house.reading(lambda reader: reader.step(scenario, number)) if number is not None else None
    asks = [
        row for row in await house.reading(lambda reader: reader.asks(scenario)) if number and row["step"] == number
    ]
    proposals = await house.reading(lambda reader: reader.proposals(scenario))
    mine = [row for row in proposals if number and row["step"] == number]
    files: list[Json] = []
    if parent is not None:
        release = version["release_id"]
        changed = await asyncio.to_thread(lambda: compare(house.repository, parent, release))
        files = [file.to_json() for file in changed]
    return page_sections.of_version(version, step, asks, mine, files, chain)


async def ask_page(request: web.Request) -> web.Response:
    """`GET /reef/harness/requests/{id}/page`: loads itself anew until the ask is settled."""
    house = house_of(request)
    ask = await find_ask(house, request.match_info["id"])
    if _scenario(request, ask["scenario"]).name != ask["scenario"]:
        raise NotFound(f"scenario {_scenario(request).name} has no such ask", "reef asks list")
    sections = await ask_sections(house, ask)
    settled = ask["state"] not in ("queued", "running")
    title = f"ask #{ask['number']} of scenario {ask['scenario']}: {ask['state']}"
    return page_html.page(title, sections, ask, None if settled else _REFRESH_S)


async def ask_sections(house: House, ask: Json) -> list[Json]:
    """What there is to say about an ask, for a page and for a terminal."""
    step = None
    if ask["step"] is not None:
        step = await house.reading(lambda reader: reader.step(ask["scenario"], ask["step"]))
    _, meaning = await meaning_of(house, ask)
    return page_sections.of_ask(ask, step, meaning)


async def step_records(request: web.Request) -> web.Response:
    """`GET /reef/harness/releases/{step}/records[?path=]`: what the step of a version left, or one file of it."""
    house, scenario = house_of(request), _scenario(request)
    version, _ = await _version(house, scenario, request.match_info["step"])
    if version["step"] is None:
        # A base, a rollback, an import: no step made it.
        return json_reply({"status": "not_recorded", "files": []})
    folder = house.paths.steps / scenario.name / str(version["step"])
    path = request.query.get("path")
    if path is None:
        return json_reply(await asyncio.to_thread(step_files.inventory, folder))
    return json_reply(await asyncio.to_thread(step_files.text_of, folder, path))


def _scenario(request: web.Request, own: str | None = None) -> Scenario:
    """The scenario of a page: by its key, by `?scenario=` or by header. Raises Unauthorized when two differ."""
    named = request.get(PAGE_SCENARIO) or request.query.get("scenario")
    header = request.headers.get(HEADER)
    if named and header and scenario_name(named).lower() != scenario_name(header).lower():
        raise Unauthorized("the header and the query name two scenarios", f"send one {HEADER}")
    wanted = named or (None if header else own)
    if wanted is None:
        return asked_scenario(request)
    return house_of(request).scenarios.known(wanted, archived=True)


async def _version(house: House, scenario: Scenario, step: str) -> tuple[Json, list[Json]]:
    """The version of that number, and all of them. Raises NotFound for anything but 1 to 9 digits too."""
    chain = await catalog(house, scenario.name)
    for row in chain if step.isascii() and step.isdigit() and len(step) <= 9 else ():
        if row["version"] == int(step):
            return row, chain
    newest = f" (newest: v{chain[-1]['version']})" if chain else ""
    raise NotFound(f"scenario {scenario.name} has no version {step[:20]}{newest}", "reef versions list")


ROUTES = [
    Route("GET", "/reef/harness/releases/{step}/page", version_page, page=True, in_path=True),
    Route("GET", "/reef/harness/releases/{step}/records", step_records, in_path=True),
    Route("GET", "/reef/harness/requests/{id}/page", ask_page, Access.OPEN, page=True, in_path=True),
]
