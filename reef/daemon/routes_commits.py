"""The commit log of a scenario as the public protocol has it: each version with what it consumed and measured."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from reef.daemon.house import House, house_of
from reef.daemon.named_versions import catalog
from reef.daemon.naming import scenario_in_path
from reef.daemon.replies import json_reply, whole_number
from reef.daemon.table import Route
from reef.errors import InvalidInput, ReefError
from reef.ids import is_id

Json = dict[str, Any]
_MOST_IDS = 100
_PAGE = 50


async def commits(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/commits?after_step=0&limit=50&record_id=…`: oldest first.

    `step` is the number of the version that a commit made, `training_step` that of the step it came from. `record_id`
    (as often as 100 times) keeps the commits that consumed one of these. `operation_verified` says whether the commit
    itself, in git, names the number and the operation that the catalog has.
    """
    house, scenario = house_of(request), scenario_in_path(request)
    after = whole_number(request.query.get("after_step"), "after_step", 0) or 0
    limit = whole_number(request.query.get("limit"), "limit", _PAGE, 1, _PAGE * 2) or _PAGE
    wanted = set(request.query.getall("record_id", []))
    if len(wanted) > _MOST_IDS or not all(is_id(name) for name in wanted):
        raise InvalidInput(f"'record_id' is not one of at most {_MOST_IDS} ids of 32 hex digits")
    steps = await house.reading(lambda reader: {row["number"]: row for row in reader.steps(scenario.name)})
    rows = [
        (version, steps.get(version["step"]) or {})
        for version in await catalog(house, scenario.name)
        if version["version"] > after
    ]
    if wanted:
        rows = [(version, step) for version, step in rows if wanted & set(step.get("consumed") or ())]
    page = await asyncio.to_thread(lambda: [_commit(house, version, step) for version, step in rows[:limit]])
    more = page[-1]["step"] if len(rows) > limit else None
    return json_reply({"scenario": scenario.name, "commits": page, "next_after_step": more})


def _commit(house: House, version: Json, step: Json) -> Json:
    return {
        "step": version["version"],
        "training_step": version["step"],
        "operation": version["operation"],
        "operation_verified": _verified(house, version),
        "recorded_at": version["created_at"],
        "artifact_ref": {name: version[name] for name in ("release_id", "content_id", "parent_release_id")},
        "pending": version["pending"],
        "consumed_ids": step.get("consumed") or [],
        "metrics": step.get("metrics") or {},
    }


def _verified(house: House, version: Json) -> bool:
    """Whether git tells the same of a version as the catalog."""
    try:
        facts = house.repository.facts(version["release_id"])
        content = house.repository.content_id(version["release_id"])
    except ReefError:
        return False
    told = (facts.get("number"), facts.get("operation"), content)
    return told == (version["version"], version["operation"], version["content_id"])


ROUTES = [Route("GET", "/reef/scenarios/{scenario}/commits", commits)]
