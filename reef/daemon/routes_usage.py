"""What was used: calls, tokens, cost and time."""

from __future__ import annotations

from datetime import datetime

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.replies import json_reply
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.records import usage
from reef.records.prices import Prices


async def show_usage(request: web.Request) -> web.Response:
    """`GET /reef/usage?by&since&scenario`: `by` is agent, model (the default), version, tool or day."""
    house, query = house_of(request), request.query
    by = usage.checked_by(query.get("by") or "model")
    since = query.get("since") or None
    if since is not None:
        try:
            datetime.fromisoformat(since)
        except ValueError:
            raise InvalidInput("'since' is not a time such as 2026-01-31T12:00:00Z") from None
    scenario = house.scenarios.known(query["scenario"]).name if query.get("scenario") else None
    prices = Prices(house.settings.usage.prices)
    found = await house.reading(
        lambda reader: reader.query(lambda conn: usage.usage(conn, by, prices, since, scenario))
    )
    if by == "tool":
        tools = usage.Tools(since, scenario)
        # One slice at a time: other questions come in between.
        while await house.reading(lambda reader: reader.query(tools.read)):
            continue
        found = usage.with_tools(found, tools)
    return json_reply(found)


ROUTES = [Route("GET", "/reef/usage", show_usage)]
"""Keyed: names of models, agents and tools are of what was recorded."""
