"""Carrying versions away, and in from another reef."""

from __future__ import annotations

import asyncio

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.carrying import KINDS, checked_path, judge, look, pack, publish, workplace
from reef.daemon.house import house_of
from reef.daemon.named_versions import find_version
from reef.daemon.naming import scenario_in_path
from reef.daemon.replies import json_body, json_reply, text_field
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.versions import carry
from reef.versions.diff import compare

_PIECE = 1024 * 1024
_TYPES = {"archive": "application/gzip", "bundle": "application/x-git-bundle"}


async def export(request: web.Request) -> web.StreamResponse:
    """`GET /reef/scenarios/{scenario}/versions/{number}/export?as=`: the version in one file.

    `archive` (the default) and `bundle` are for another reef; `skills`, `agents-md` and `git` are a tar of a plain
    folder that works without reef.
    """
    house, scenario = house_of(request), scenario_in_path(request)
    asked = request.query.get("as", "archive")
    kind = next((known for known in KINDS if known == asked), None)
    if kind is None:
        raise InvalidInput(f"there is no form {asked[:40]!r} (forms: {', '.join(KINDS)})", "reef versions export v1")
    version = await find_version(house, scenario.name, request.match_info["number"])
    with workplace(house) as folder:
        file = await asyncio.to_thread(pack, house, version, kind, folder)
        reply = web.StreamResponse(headers={"cache-control": "no-store"})
        reply.content_type = _TYPES.get(kind, "application/x-tar")
        reply.content_length = file.stat().st_size
        await reply.prepare(request)
        with file.open("rb") as body:
            while piece := await asyncio.to_thread(body.read, _PIECE):
                await reply.write(piece)
    return reply


async def import_version(request: web.Request) -> web.Response:
    """`POST /reef/scenarios/{scenario}/import`: `{"path", "look"?, "expected"?}`; always a new version.

    One that adds or changes code waits for the person. With `look` nothing is published: the reply says what would be,
    and its `content_id` sent as `expected` makes sure that it is what was seen.
    """
    house, scenario = house_of(request), scenario_in_path(request)
    body = await json_body(request)
    place = checked_path(body.get("path"))
    expected = text_field(body, "expected", longest=40)
    with workplace(house) as folder:
        (folder / "large").mkdir()
        carried = await asyncio.to_thread(carry.read, place, folder / "large")
        arrival = await judge(house, scenario, carried, place.name)
        proposal = arrival.proposal
        said = {"scenario": scenario.name, "from": arrival.named, "pending": proposal.pending, "code": arrival.reasons}
        said["requires"] = list(proposal.requires)
        if body.get("look") is True:
            found = await look(house, arrival)
            parent, release = str(proposal.parent), found["release_id"]
            files = await asyncio.to_thread(compare, house.repository, parent, release)
            return json_reply(said | {"content_id": found["content_id"], "files": [file.to_json() for file in files]})
        return json_reply(said | await publish(house, arrival, expected), status=201)


ROUTES = [
    Route("GET", "/reef/scenarios/{scenario}/versions/{number}/export", export),
    Route("POST", "/reef/scenarios/{scenario}/import", import_version, Access.DECIDING),
]
