"""Records: windows of rows, one record with its text, and the exact stored bytes."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from reef.daemon.house import house_of
from reef.daemon.naming import scenario_filter
from reef.daemon.replies import json_reply, whole_number
from reef.daemon.table import Route
from reef.errors import NotFound
from reef.ids import to_blob

Json = dict[str, Any]
_MOST = 1000
_SHOWN_BYTES = 8 * 1024 * 1024


async def list_records(request: web.Request) -> web.Response:
    """`GET /reef/records`: newest first."""
    house, query = house_of(request), request.query
    limit = whole_number(query.get("limit"), "limit", 100, 1, _MOST)
    before = whole_number(query.get("before"), "before")
    after = whole_number(query.get("after"), "after")
    scenario = scenario_filter(request)
    session, words = query.get("session") or None, query.get("q") or None
    found, total = await house.reading(
        lambda reader: (
            reader.records(
                scenario=scenario, session=session, before=before, after=after, limit=limit or 100, text=words
            ),
            reader.count_records(scenario=scenario, session=session, text=words),
        )
    )
    return json_reply({"records": found, "total": total})


async def show_record(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}`: the row, its reports, and its bodies as text where they are text."""
    house, receipt = house_of(request), _receipt(request)

    def read(reader: Any) -> Json:
        row = dict(reader.record(receipt))
        for name, size in (("request", row["request_bytes"]), ("response", row["response_bytes"])):
            if (size or 0) <= _SHOWN_BYTES:
                body = reader.request_bytes(receipt) if name == "request" else reader.response_bytes(receipt)
                row[f"{name}_text"] = _text(body)
        row["reports"] = reader.reports(record=receipt)
        return row

    return json_reply(await house.reading(read))


async def request_body(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}/request`."""
    receipt = _receipt(request)
    return _bytes(await house_of(request).reading(lambda reader: reader.request_bytes(receipt)), "request")


async def response_body(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}/response`."""
    receipt = _receipt(request)
    return _bytes(await house_of(request).reading(lambda reader: reader.response_bytes(receipt)), "response")


async def raw_stream(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}/raw`: the event stream as it came, where it was kept."""
    receipt = _receipt(request)
    return _bytes(await house_of(request).reading(lambda reader: reader.raw_bytes(receipt)), "raw stream")


def _receipt(request: web.Request) -> str:
    receipt = request.match_info["id"]
    to_blob(receipt)
    return receipt


def _bytes(body: bytes | None, what: str) -> web.Response:
    if body is None:
        raise NotFound(f"this record has no {what}", "reef records list")
    # Never a type that a browser would run.
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return web.Response(body=body, content_type="application/octet-stream", headers=headers)


def _text(body: bytes | None) -> str | None:
    if body is None:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


ROUTES = [
    Route("GET", "/reef/records", list_records),
    Route("GET", "/reef/records/{id}", show_record),
    Route("GET", "/reef/records/{id}/request", request_body),
    Route("GET", "/reef/records/{id}/response", response_body),
    Route("GET", "/reef/records/{id}/raw", raw_stream),
]
