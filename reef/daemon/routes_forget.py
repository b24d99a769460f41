"""Removing what was recorded, by the person alone: look what would go, forget it, finish that, prune old bodies.

All of them tell their progress as lines, `{"progress", "seconds"}`, and end with their result or `{"error"}`.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.forgetting import Wish
from reef.daemon.house import house_of
from reef.daemon.installing import Progress, tell
from reef.daemon.replies import json_body, text_field
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.ids import to_blob
from reef.records.made_from import KINDS

Json = dict[str, Any]
_MOST = 10_000


async def look(request: web.Request) -> web.StreamResponse:
    """`POST /reef/forget/look`: everything that would go and what would stay, and the `token` that stands for it."""
    house = house_of(request)
    wish = _wish(await json_body(request))
    if wish.scenario is not None:
        house.scenarios.known(wish.scenario, archived=True)
    return await tell(request, lambda say: house.housekeeping.forgetting.look(wish, say), end="found")


async def forget(request: web.Request) -> web.StreamResponse:
    """`POST /reef/forget`: remove what was shown with this `expected` token; 409 when it would be something else."""
    house = house_of(request)
    token = text_field(await json_body(request), "expected", required=True, longest=64) or ""
    return await tell(request, lambda say: house.housekeeping.forgetting.forget(token, say), end="forgotten")


async def finish(request: web.Request) -> web.StreamResponse:
    """`POST /reef/forget/finish`: go on with a forgetting that something stopped; `null` when there is none."""
    house = house_of(request)

    def work(say: Progress) -> Json:
        return house.housekeeping.forgetting.finish(say) or {}

    return await tell(request, work, end="forgotten")


async def prune(request: web.Request) -> web.StreamResponse:
    """`POST /reef/records/prune`: the oldest bodies go until `keep_bytes` of them are left."""
    house = house_of(request)
    keep = (await json_body(request)).get("keep_bytes")
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
        raise InvalidInput("'keep_bytes' is no number of bytes", "reef records prune --keep-bytes 1GB")
    return await tell(request, lambda say: house.housekeeping.prune(keep, say), end="pruned")


def _wish(body: Json) -> Wish:
    receipts, keep = body.get("receipts") or [], body.get("keep") or []
    for name, value in (("receipts", receipts), ("keep", keep)):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidInput(f"{name!r} is no list of strings")
    if len(receipts) > _MOST:
        raise InvalidInput(f"more than {_MOST:,} receipts at once", "reef records forget --session KEY")
    for receipt in receipts:
        to_blob(receipt)
    unknown = sorted(set(keep) - set(KINDS))
    if unknown:
        raise InvalidInput(f"there is no kind {unknown[0][:40]!r} to keep ({', '.join(KINDS)})")
    session, matching = text_field(body, "session", longest=512), text_field(body, "matching")
    if sum(map(bool, (receipts, session, matching))) != 1:
        raise InvalidInput("name one of 'receipts', 'session' and 'matching'", "reef records forget --help")
    scenario = text_field(body, "scenario", longest=64)
    return Wish(tuple(receipts), session or None, matching or None, scenario, frozenset(keep))


ROUTES = [
    Route("POST", "/reef/forget/look", look),
    Route("POST", "/reef/forget", forget, Access.DECIDING),
    Route("POST", "/reef/forget/finish", finish, Access.DECIDING),
    Route("POST", "/reef/records/prune", prune, Access.DECIDING),
]
