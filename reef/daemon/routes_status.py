"""How the daemon stands: health with proof of identity, status, events, recipes, settings, and the request to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

import orjson
from aiohttp import web

from reef import __version__
from reef.daemon.access import Access
from reef.daemon.house import House, house_of
from reef.daemon.replies import json_body, json_reply, whole_number
from reef.daemon.table import Route
from reef.discovery import prove
from reef.errors import InvalidInput, ReefError
from reef.harness.adapter import known_adapters
from reef.harness.agents import is_installed
from reef.learning.manifest import known_recipes
from reef.records import totals

log = logging.getLogger("reef.daemon")
_PING_S = 15.0
_BREATH_S = 0.05


async def healthz(request: web.Request) -> web.Response:
    """`GET /healthz`: HTTP is up; a challenge is answered with the proof that this is the home's daemon."""
    challenge = request.headers.get("x-reef-challenge")
    headers = {}
    if challenge is not None and 16 <= len(challenge) <= 128:
        headers["x-reef-proof"] = prove(house_of(request).person_key, challenge)
    return json_reply({"ok": True}, headers=headers)


async def status(request: web.Request) -> web.Response:
    """`GET /reef/status`: counts and states, never text."""
    house = house_of(request)
    _, counts, search, agents = await asyncio.gather(
        house.engines.health(),
        house.reading(lambda reader: reader.counts() | {"totals": reader.query(totals.read)}),
        house.reading(lambda reader: reader.search_state()),
        asyncio.to_thread(_agents, house),
    )
    scenarios = [row | {"problem": house.publisher.problem_now(row["name"])} for row in counts["scenarios"]]
    needs_you = [
        {"kind": "pending_version", "scenario": row["name"], "version": version}
        for row in scenarios
        for version in row["pending"]
    ]
    return json_reply(
        {
            "version": __version__,
            "url": house.discovery["url"],
            "pid": os.getpid(),
            "started_at": house.started_at,
            "uptime_s": round(time.monotonic() - house.started, 3),
            "stopping": house.stopping,
            "engine": house.engines.own.describe(),
            "scenarios": scenarios,
            "records": counts["records"]
            | {"lost": house.gateway.lost, "failure": house.writer.failure, "pruned": _pruned(counts["totals"])},
            "search": search | {"cpu_s": round(house.indexing.cpu_s, 3)},
            "agents": agents,
            "needs_you": needs_you,
        }
    )


def _pruned(found: dict[str, int]) -> dict[str, int]:
    """What retention took and what the person had forgotten, over the store's life."""
    return {
        "records": found.get(totals.PRUNED_RECORDS, 0),
        "bytes": found.get(totals.PRUNED_BYTES, 0),
        "forgotten": found.get(totals.FORGOTTEN_RECORDS, 0),
    }


def _agents(house: House) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, adapter in known_adapters(house.paths):
        if isinstance(adapter, ReefError):
            found.append({"name": name, "version": None, "installed": False, "problem": adapter.message})
            continue
        version = adapter.install.version if adapter.install else None
        there = is_installed(adapter, house.paths)
        found.append({"name": name, "version": version, "installed": there, "problem": None})
    return found


async def events(request: web.Request) -> web.StreamResponse:
    """`GET /reef/events?after=`: server-sent events, resumed by `Last-Event-ID`; from now on without either."""
    house = house_of(request)
    given = request.headers.get("last-event-id") or request.query.get("after")
    after = whole_number(given, "after")
    reply = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-store"})
    async with house.feed as feed:
        last = await feed.last() if after is None else after
        await reply.prepare(request)
        await reply.write(b": reef events\n\n")
        while not feed.closed:
            generation = feed.generation
            try:
                found = await feed.after(last)
            except ReefError as error:
                # The status line is long gone: the end of the stream is all that can still be said.
                log.error("events cannot be read: %s", error.message)
                break
            if found:
                last = found[-1]["sequence"]
                await reply.write(b"".join(_frame(event) for event in found))
                # A busy daemon commits hundreds of times a second; one look each 50 ms shows them all.
                await asyncio.sleep(_BREATH_S)
            elif not await feed.wait(generation, _PING_S):
                await reply.write(b": still here\n\n")
    return reply


def _frame(event: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event["sequence"], event["kind"].encode(), orjson.dumps(event))


async def recipes(request: web.Request) -> web.Response:
    """`GET /reef/recipes`: every recipe with its line of help, and which one new scenarios get."""
    house = house_of(request)
    found: list[dict[str, Any]] = []
    for folder, wanted in await asyncio.to_thread(known_recipes, house.paths):
        name = folder.name.replace("_", "-")
        row = {"name": name, "folder": str(folder), "chosen": name == house.settings.recipe.implementation}
        if isinstance(wanted, ReefError):
            found.append(row | {"help": "", "surface": [], "problem": wanted.message})
        else:
            found.append(row | {"help": wanted.help, "surface": wanted.surface, "problem": None})
    return json_reply({"recipes": found})


async def config(request: web.Request) -> web.Response:
    """`GET /reef/config`: every setting with its origin; secrets as set or unset."""
    house = house_of(request)
    files = [str(file) for file in house.resolved.files]
    return json_reply({"settings": house.resolved.describe(), "files": files})


async def stop(request: web.Request) -> web.Response:
    """`POST /reef/stop`: running calls get their time; asked a second time, or with `now`, they are cut."""
    house = house_of(request)
    body = await json_body(request, required=False)
    now = body.get("now", False)
    if not isinstance(now, bool):
        raise InvalidInput("'now' is neither true nor false")
    assert house.stop is not None
    cut = now or house.stopping
    house.stop(cut)
    return json_reply({"stopping": True, "now": cut, "running_calls": house.gateway.running})


ROUTES = [
    Route("GET", "/healthz", healthz, Access.OPEN, session=True),
    Route("GET", "/reef/status", status, Access.OPEN),
    Route("GET", "/reef/events", events),
    Route("GET", "/reef/recipes", recipes),
    Route("GET", "/reef/config", config),
    Route("POST", "/reef/stop", stop),
]
