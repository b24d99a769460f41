"""Why something is as it is: from a line that an agent reads, an entry or a version to the calls that led to it."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from reef.daemon.house import House, house_of
from reef.daemon.named_versions import catalog, find_version
from reef.daemon.naming import scenario_in_path
from reef.daemon.origins import RECORDED, behind, link
from reef.daemon.replies import json_reply, whole_number
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound
from reef.harness.adapter import load_adapter
from reef.harness.placing import entry_paths, place
from reef.harness.tree import PREFIX, Tree
from reef.versions.why import brought, changed

Json = dict[str, Any]
_CHANGES = 10
"""Versions of one entry that are told."""


async def why(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/why?file=&line=&adapter=` or `?entry=` or neither; `&version=` (default: head).

    `{"scenario", "version", "links": [{"kind", "how": "recorded" | "inferred", "why", …}]}`, from what was asked for
    back to where it came from.
    """
    house, scenario, query = house_of(request), scenario_in_path(request), request.query
    named = query.get("version") or str((await house.publisher.head(scenario.name)).number)
    version = await find_version(house, scenario.name, named)
    file, entry = query.get("file"), query.get("entry")
    if file and entry:
        raise InvalidInput("the query holds both 'file' and 'entry'", "reef why FILE:LINE")
    found: tuple[list[Json], list[str], str | None] = [], [str(version["release_id"])], None
    if file:
        line = whole_number(query.get("line"), "line", None, 1)
        if line is None:
            raise InvalidInput("the query needs 'line' beside 'file'", "reef why FILE:LINE")
        adapter = load_adapter(query.get("adapter") or scenario.adapter, house.paths)
        found = await asyncio.to_thread(_of_line, house, version, adapter, file, line)
    elif entry:
        found = await asyncio.to_thread(_of_entry, house, version, entry)
    links, releases, id = found
    rows = {row["release_id"]: row for row in await catalog(house, scenario.name)}
    for release in releases[:_CHANGES]:
        links += await _version(house, rows, release, id)
    return json_reply({"scenario": scenario.name, "version": version["version"], "links": links})


def _of_line(house: House, version: Json, adapter: Any, file: str, line: int) -> tuple[list[Json], list[str], str]:
    release = str(version["release_id"])
    tree = Tree.from_files(house.repository.files(release, PREFIX))
    found = place(tree, adapter, file, line)
    links = [
        link("line", RECORDED, f"v{version['version']} gives it to {adapter.title}", file=file, line=line,
             text=found.text),
        link("entry", RECORDED, "the line is rendered from it", id=found.entry.id, entry_kind=found.entry.kind),
    ]  # fmt: skip
    if found.line is not None:
        return links, [brought(house.repository, release, found.path, found.line)], found.entry.id
    # Rendering made the line, so what it was made from is the entry as it stands.
    last = changed(house.repository, release, frozenset([found.path]))[:1]
    links[-1] |= {"how": "inferred", "why": "rendering made the line from this entry"}
    return links, last, found.entry.id


def _of_entry(house: House, version: Json, id: str) -> tuple[list[Json], list[str], str]:
    release = str(version["release_id"])
    tree = Tree.from_files(house.repository.files(release, PREFIX))
    entry = tree.get(id)
    if entry is None:
        there = ", ".join(item.id for item in tree.entries) or "none"
        raise NotFound(
            f"v{version['version']} has no entry {id[:64]!r} (entries: {there})",
            f"reef versions show v{version['version']}",
        )
    why = f"v{version['version']} holds it"
    links = [link("entry", RECORDED, why, id=id, entry_kind=entry.kind)]
    return links, changed(house.repository, release, frozenset(entry_paths(entry))), id


async def _version(house: House, rows: dict[str, Json], release: str, entry: str | None) -> list[Json]:
    row = rows.get(release)
    if row is None:
        return [link("version", RECORDED, "git has it, and the catalog does not know it", release_id=release)]
    told = "" if entry is None else "git: it brought this, and the version before it has it not"
    found = link(
        "version", RECORDED, told or "it was asked for", version=row["version"], release_id=release,
        operation=row["operation"], state=row["state"], summary=row["summary"], created_at=row["created_at"],
    )  # fmt: skip
    return [found, *await house.reading(lambda reader: behind(reader, row, entry))]


ROUTES = [Route("GET", "/reef/scenarios/{scenario}/why", why)]
