"""Installing on this machine: a harness version for one agent, or the agent's own program."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from typing import Any

from aiohttp import web

from reef import events, fetching, needs
from reef.daemon.access import Access
from reef.daemon.house import House, house_of
from reef.daemon.installing import Json, Progress, tell
from reef.daemon.named_versions import catalog, find_version
from reef.daemon.replies import json_body, json_reply, text_field
from reef.daemon.routes_harness import rendered
from reef.daemon.routes_pins import to_install
from reef.daemon.table import Route
from reef.errors import Conflict, InvalidInput
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.agents import install_agent
from reef.harness.install import install_tree
from reef.harness.removal import remove_install
from reef.provided import provided
from reef.records import rows


async def install_harness(request: web.Request) -> web.StreamResponse:
    """`POST /reef/harness/install`: the version becomes what the wrapper runs; default: the pinned one, else the head.

    A pending version is promoted first: installing it is the person's yes. `expected_head` makes a lost race a 409.
    `environment` is the caller's way to the package registries (`reef.fetching`), used in place of the daemon's own;
    `met` names what the version needs and the caller's shell has. What is still missing then blocks the install before
    anything is written.
    """
    house = house_of(request)
    body = await json_body(request)
    scenario = house.scenarios.known(body.get("scenario"))
    adapter = load_adapter(text_field(body, "adapter", longest=64) or scenario.adapter, house.paths)
    sent = fetching.checked(body.get("environment"))
    expected = body.get("expected_head")
    if expected is None and body.get("version") is None:
        # What the person gets is what is served now, and an adapter of theirs may have changed since the start.
        await house.upgrading.one(scenario.name)
    head = await house.publisher.head(scenario.name)
    if expected is not None and (await find_version(house, scenario.name, str(expected)))["version"] != head.number:
        raise Conflict(f"v{head.number} is served, not {expected} as expected", "reef versions list")
    asked = body.get("version")
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int | str)):
        raise InvalidInput("'version' is neither a number nor a release id")
    found = await to_install(house, scenario.name, adapter.name, asked, head.number)
    await _refuse_unmet(house, scenario.name, adapter.name, found, body.get("met"))
    if found["state"] == "pending":
        promoted = await house.upgrading.promote(scenario.name, found["version"], expected)
        found = await find_version(house, scenario.name, promoted.release_id)
    elif found["state"] != "published":
        raise InvalidInput(f"v{found['version']} is {found['state']} and cannot be installed", "reef versions list")

    def work(say: Progress) -> Json:
        install_agent(adapter, house.paths, say, fetching.merged(sent))
        files, left_out = rendered(house, found["release_id"], adapter)
        for reason in left_out:
            say(f"left out: {reason}")
        done = install_tree(
            house.paths, scenario.name, adapter, found["version"], files,
            release_id=found["release_id"], content_id=found["content_id"], left_out=left_out,
        )  # fmt: skip
        return done.to_json()

    async def after(done: Json) -> None:
        if done["changed"]:
            ids: dict[str, Any] = {"version": done["version"], "adapter": adapter.name}
            await _note(house, events.HARNESS_INSTALLED, scenario.name, ids)

    return await tell(request, work, after)


async def _refuse_unmet(house: House, scenario: str, adapter: str, found: Json, met: object) -> None:
    """Raises Refused that names what the version needs and nobody has provided."""
    if not found["requires"]:
        return
    told = {key for key in met if isinstance(key, str)} if isinstance(met, list) else set()
    there = provided(house.paths, scenario, adapter)
    wanted = [need for need in found["requires"] if needs.key(need) not in told]
    # Of the daemon's own variables only the PATH says something about the person's machine.
    missing = there.unmet(wanted, {"PATH": os.environ.get("PATH", "")})
    needs.refuse(f"v{found['version']}", missing, scenario, await catalog(house, scenario), found["version"])


async def install_program(request: web.Request) -> web.StreamResponse:
    """`POST /reef/agents/{adapter}`: the agent's pinned program, from its lock file; no harness.

    `environment` as in `install_harness`.
    """
    house = house_of(request)
    sent = fetching.checked((await json_body(request, required=False)).get("environment"))
    adapter: Adapter = load_adapter(request.match_info["adapter"], house.paths)
    version = adapter.install.version if adapter.install else None

    def work(say: Progress) -> Json:
        changed = install_agent(adapter, house.paths, say, fetching.merged(sent))
        return {"adapter": adapter.name, "version": version, "changed": changed}

    async def after(done: Json) -> None:
        if done["changed"]:
            await _note(house, events.AGENT_INSTALLED, None, {"adapter": adapter.name})

    return await tell(request, work, after)


async def remove(request: web.Request) -> web.Response:
    """`POST /reef/harness/remove`: what is installed of a scenario for an agent goes, with the agent's sessions in it.

    Its wrapper and its program go with the last scenario that was installed for it.
    """
    house = house_of(request)
    body = await json_body(request)
    scenario = house.scenarios.known(body.get("scenario"))
    adapter = text_field(body, "adapter", longest=64)
    if adapter is None:
        raise InvalidInput("'adapter' is missing", "reef agents list")
    running = house.sessions.running(scenario.name, adapter)
    if running is not None:
        told = f"reef-{adapter} runs on scenario {scenario.name} (process {running.pid})"
        raise Conflict(f"{told}, and its home cannot be removed meanwhile", "end it, then try again")
    done = await asyncio.to_thread(remove_install, house.paths, scenario.name, adapter)
    ids = {"version": done.version, "adapter": adapter}
    await _note(house, events.HARNESS_REMOVED, scenario.name, ids, "removed")
    return json_reply(done.to_json())


async def _note(house: House, kind: str, scenario: str | None, ids: dict[str, Any], state: str = "installed") -> None:
    def write(conn: sqlite3.Connection) -> None:
        rows.add_event(conn, kind, scenario, ids, state)

    await house.writer.write(write)


ROUTES = [
    Route("POST", "/reef/harness/install", install_harness, Access.DECIDING),
    Route("POST", "/reef/harness/remove", remove, Access.DECIDING),
    Route("POST", "/reef/agents/{adapter}", install_program),
]
