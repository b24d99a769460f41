"""What came into one scenario, as clients of the public protocol page through it."""

from __future__ import annotations

from typing import get_args

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.naming import scenario_in_path
from reef.daemon.replies import json_reply, whole_number
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.ids import to_blob
from reef.records import timeline

_MOST = 100


async def list_timeline(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/records?after_sequence&limit&request_type`: oldest first, without bodies."""
    house, scenario, query = house_of(request), scenario_in_path(request), request.query
    after = whole_number(query.get("after_sequence"), "after_sequence", 0) or 0
    limit = whole_number(query.get("limit"), "limit", 50, 1, _MOST) or 50
    given = query.get("request_type") or None
    kind = next((one for one in timeline.KINDS if one == given), None)
    if given != kind:
        raise InvalidInput(f"request_type is one of {', '.join(get_args(timeline.Kind))}")
    rows = await house.reading(
        lambda reader: reader.query(lambda conn: timeline.timeline(conn, scenario.name, after, limit, kind))
    )
    return json_reply({"records": rows, "next_after_sequence": rows[-1]["sequence"] if rows else after})


async def show_entry(request: web.Request) -> web.Response:
    """`GET /reef/scenarios/{scenario}/records/{id}`: one of them with its payload; 404 when that is not kept."""
    scenario, id = scenario_in_path(request), request.match_info["id"]
    to_blob(id)
    body = await house_of(request).reading(
        lambda reader: reader.query(lambda conn: timeline.entry(conn, scenario.name, id))
    )
    return web.Response(body=body, content_type="application/json", headers={"cache-control": "no-store"})


ROUTES = [
    Route("GET", "/reef/scenarios/{scenario}/records", list_timeline),
    Route("GET", "/reef/scenarios/{scenario}/records/{id}", show_entry),
]
