"""What was used: calls, tokens, cost and time."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.replies import json_reply
from reef.daemon.table import Route
from reef.errors import InvalidInput
from reef.ids import stamp
from reef.records.reader import Reader


async def show_usage(request: web.Request) -> web.Response:
    """`GET /reef/usage?by&since&scenario`: `by` is agent, model (the default), version, tool or day."""
    house, query = house_of(request), request.query
    since = _time(query.get("since"))
    scenario = house.scenarios.known(query["scenario"], archived=True).name if query.get("scenario") else None
    own: dict[str, Any] = dict(house.settings.usage.prices)

    def look() -> dict[str, Any]:
        # Of a hundred thousand calls this takes a second, in which other questions must not wait.
        reader = Reader(house.paths.database)
        try:
            return reader.usage(query.get("by") or "model", own, since, scenario)
        finally:
            reader.close()

    return json_reply(await asyncio.to_thread(look))


def _time(text: str | None) -> str | None:
    """A time of any zone in the form in which times are stored."""
    if not text:
        return None
    try:
        return stamp(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise InvalidInput("'since' is not a time such as 2026-01-31T12:00:00Z") from None


ROUTES = [Route("GET", "/reef/usage", show_usage)]
"""Keyed: names of models, agents and tools are of what was recorded."""
