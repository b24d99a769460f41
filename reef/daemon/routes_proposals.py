"""Proposals: changes that an agent writes in its session, kept in an inbox until a step takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from reef.daemon.asking import check_text, short_text
from reef.daemon.house import House, house_of
from reef.daemon.named_versions import find_version
from reef.daemon.naming import asked_scenario, caller_of, scenario_filter
from reef.daemon.replies import json_body, json_reply
from reef.daemon.scenarios import Scenario
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound
from reef.harness.adapter import load_adapter
from reef.harness.admission import admit
from reef.harness.tree import PREFIX, Tree
from reef.learning.manifest import manifest
from reef.records import proposals

Json = dict[str, Any]
_MOST_MUTATIONS = 16
_LONGEST_REASON = 2000
_OPS = ("create", "update", "remove")


async def propose(request: web.Request) -> web.Response:
    """`POST /reef/harness/proposals`: admitted into the inbox or not, with the reason; never applied here."""
    house, scenario, caller = house_of(request), asked_scenario(request), caller_of(request)
    body = await json_body(request)
    if "proposals" not in manifest(scenario.recipe, house.paths).inputs:
        raise NotFound(f"scenario {scenario.name!r} takes no proposals (recipe {scenario.recipe})", "reef recipes list")
    house.publisher.require(scenario.name)
    reason = body.get("reason")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > _LONGEST_REASON:
        raise InvalidInput(f"'reason' is not a text of 1 to {_LONGEST_REASON} characters")
    check_text("'reason'", reason)
    session, release = short_text(body, "session"), short_text(body, "release_id")
    mutations = _mutations(body.get("mutations"))
    if release is not None:
        await find_version(house, scenario.name, release)
    head = await house.publisher.head(scenario.name)
    refused = await asyncio.to_thread(_refused, house, scenario, head.release_id, mutations)
    id = None
    if refused is None:
        bound = caller.session.id if caller.session is not None else session
        id = await house.writer.write(
            lambda conn: proposals.add_proposal(
                conn, scenario.name, mutations, reason, caller.source, bound, release or head.release_id
            )
        )
        if id is None:
            refused = f"inbox full: {proposals.INBOX} proposals of scenario {scenario.name} wait for their step"
        else:
            house.supervisor.wake(scenario.name)
    said = "it waits for a step of its own" if refused is None else refused
    return json_reply(
        {
            "proposal_id": id,
            "admitted": id is not None,
            "reason": said,
            "release_id": head.release_id,
            "scenario": scenario.name,
        }
    )


async def list_proposals(request: web.Request) -> web.Response:
    """`GET /reef/proposals?scenario=`: newest first."""
    house, scenario = house_of(request), scenario_filter(request)
    return json_reply({"proposals": await house.reading(lambda reader: reader.proposals(scenario))})


def _refused(house: House, scenario: Scenario, release: str, mutations: list[Json]) -> str | None:
    """Why the change cannot be a candidate of what is served now; None when it can."""
    tree = Tree.from_files(house.repository.files(release, PREFIX))
    found = admit(tree, mutations, load_adapter(scenario.adapter, house.paths))
    return None if found.ok else found.detail


def _mutations(given: object) -> list[Json]:
    """Mutations in reef's own form. Raises InvalidInput that names the first field which is not as it should be."""
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_MUTATIONS:
        raise InvalidInput(f"'mutations' is not a list of 1 to {_MOST_MUTATIONS} changes")
    return [_mutation(item) for item in given]


def _mutation(item: object) -> Json:
    if not isinstance(item, Mapping) or item.get("op") not in _OPS or not isinstance(item.get("id"), str):
        raise InvalidInput(f"a mutation needs an 'op' ({', '.join(_OPS)}) and an 'id'")
    # `options.name` is how the public protocol calls the kind of an entry.
    options = item.get("options", {"name": item.get("kind"), "config": item.get("config")})
    if not isinstance(options, Mapping) or options.get("disabled"):
        raise InvalidInput("'options' of a mutation holds a name and a config; an entry cannot be disabled")
    made: Json = {"op": item["op"], "id": item["id"]}
    for field, name, kind in (("kind", "name", str), ("config", "config", dict)):
        value = options.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            raise InvalidInput(f"{name!r} of a mutation's options is not {'a text' if kind is str else 'an object'}")
        made[field] = value
    return made


ROUTES = [
    Route("POST", "/reef/harness/proposals", propose, session=True, in_path=True),
    Route("GET", "/reef/proposals", list_proposals),
]
