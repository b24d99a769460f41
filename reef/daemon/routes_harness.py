"""The harness for clients: manifest, install script, adapters."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.house import House, house_of
from reef.daemon.named_versions import find_version
from reef.daemon.naming import asked_scenario
from reef.daemon.replies import json_reply
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import ReefError
from reef.harness.adapter import fitting, known_adapters, load_adapter, render
from reef.harness.adapter_file import Adapter, Install
from reef.harness.agents import is_installed, other_versions
from reef.harness.install import installed_versions
from reef.harness.script import install_script
from reef.harness.tree import Tree
from reef.pinned import pinned

Json = dict[str, Any]


async def manifest(request: web.Request) -> web.Response:
    """`GET /reef/harness?release_id=&adapter=`: a version's files as the agent reads them, without address or key."""
    house, scenario = house_of(request), asked_scenario(request)
    adapter = load_adapter(request.query.get("adapter") or scenario.adapter, house.paths)
    found = await _chosen(house, scenario, request.query.get("release_id"))
    files, left_out = await asyncio.to_thread(rendered, house, found["release_id"], adapter)
    reply = {
        "scenario": scenario.name,
        "adapter": adapter.name,
        "version": found["version"],
        "release_id": found["release_id"],
        "content_id": found["content_id"],
        "parent_release_id": found["parent_release_id"],
        "files": {path: body.decode("utf-8", "replace") for path, body in files.items()},
        "left_out": left_out,
        "evaluation": found["evaluation"],
        "gate": found["evaluation"],
        "requires": found["requires"],
        "components": found["components"],
    }
    return json_reply(reply, headers={"x-reef-release-id": found["release_id"]})


async def _chosen(house: House, scenario: Scenario, release_id: str | None) -> Json:
    if release_id:
        return await find_version(house, scenario.name, release_id)
    house.publisher.require(scenario.name)
    head = await house.publisher.head(scenario.name)
    return await find_version(house, scenario.name, head.release_id)


def rendered(house: House, release_id: str, adapter: Adapter) -> tuple[dict[str, bytes], list[str]]:
    """What `adapter` reads of a release, path in its home to bytes; and what it cannot be given, as sentences."""
    kept, left_out = fitting(Tree.from_files(house.repository.files(release_id, "harness")), adapter)
    return render(kept, adapter), left_out


async def script(request: web.Request) -> web.Response:
    """`GET /reef/harness/install?adapter=pi`: a shell script that installs through this daemon."""
    house, scenario = house_of(request), asked_scenario(request)
    adapter = load_adapter(request.query.get("adapter") or scenario.adapter, house.paths)
    text = install_script(house.paths, scenario.name, adapter.name, python=sys.executable)
    return web.Response(text=text, content_type="text/x-shellscript", headers={"cache-control": "no-store"})


async def adapters(request: web.Request) -> web.Response:
    """`GET /reef/harness/adapters`."""
    house = house_of(request)
    found = await asyncio.to_thread(_adapters, house)
    kept = await house.reading(lambda reader: reader.pins())
    for row in found:
        for place in row["scenarios"]:
            own = [pin for pin in kept if pin["scenario"] == place["name"]]
            place["pinned"] = pinned(own, row["name"]) == place["version"]
    return json_reply({"adapters": found})


def _adapters(house: House) -> list[Json]:
    found: list[Json] = []
    for name, adapter in known_adapters(house.paths):
        if isinstance(adapter, ReefError):
            found.append(_broken(house, name, adapter))
            continue
        install = adapter.install
        found.append(
            {
                "name": name,
                "title": adapter.title,
                "binary": adapter.binary,
                "dialect": adapter.dialect,
                "install": _install(install) if install else None,
                "installed": is_installed(adapter, house.paths),
                "version": install.version if install else None,
                "others": other_versions(adapter, house.paths),
                "scenarios": installed_versions(house.paths, name),
                "kinds": adapter.kinds,
                "rules_bytes": adapter.limits.rules_bytes,
                "alongside": adapter.alongside is not None,
                "own": adapter.own.places,
                "leaks": adapter.own.leaks,
                "contacts": adapter.own.contacts,
                "folder": str(adapter.folder),
                "problem": None,
            }
        )
    return found


def _install(spec: Install) -> Json:
    facts = {"kind": spec.kind, "package": spec.package, "version": spec.version}
    return facts | {"python": spec.python, "node": spec.node or None}


def _broken(house: House, name: str, error: ReefError) -> Json:
    """The row of an adapter that cannot be read."""
    unknown = dict.fromkeys(("binary", "dialect", "install", "version"))
    installs = installed_versions(house.paths, name)
    return {"name": name, "title": name, **unknown, "installed": False, "scenarios": installs, "problem": error.message}


ROUTES = [
    Route("GET", "/reef/harness", manifest, Access.OPEN, session=True, in_path=True),
    Route("GET", "/reef/harness/install", script, Access.OPEN, in_path=True),
    Route("GET", "/reef/harness/adapters", adapters, Access.OPEN),
]
