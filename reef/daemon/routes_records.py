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
    """`GET /reef/records`: newest first; `_wanted` says what narrows it."""
    house, query = house_of(request), request.query
    limit = whole_number(query.get("limit"), "limit", 100, 1, _MOST) or 100
    before = whole_number(query.get("before"), "before")
    after = whole_number(query.get("after"), "after")
    wanted = _wanted(request) | {"text": query.get("q") or None}
    found, total = await house.reading(
        lambda reader: (
            reader.records(before=before, after=after, limit=limit, **wanted),
            reader.count_records(**wanted),
        )
    )
    return json_reply({"records": found, "total": total})


async def search_records(request: web.Request) -> web.Response:
    """`GET /reef/records/search?q=`: records in which that was said, newest first, narrowed as the list is."""
    house, query = house_of(request), request.query
    limit = whole_number(query.get("limit"), "limit", 20, 1, _MOST) or 20
    before = whole_number(query.get("before"), "before")
    wanted, typed = _wanted(request), query.get("q") or ""
    return json_reply(await house.reading.apart(lambda reader: reader.search(typed, limit, before, **wanted)))


def _wanted(request: web.Request) -> Json:
    """`scenario, session, model, score, since, failed, cut` of a query, as `reef.records.filters` takes them."""
    query = request.query
    found: Json = {name: query.get(name) or None for name in ("session", "model", "score", "since")}
    return found | {
        "scenario": scenario_filter(request),
        "failed": bool(whole_number(query.get("failed"), "failed", 0, 0, 1)),
        "cut": bool(whole_number(query.get("cut"), "cut", 0, 0, 1)),
    }


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
    return await house_of(request).reading(
        lambda reader: _bytes(reader, receipt, reader.request_bytes(receipt), "request")
    )


async def response_body(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}/response`."""
    receipt = _receipt(request)
    return await house_of(request).reading(
        lambda reader: _bytes(reader, receipt, reader.response_bytes(receipt), "reply")
    )


async def raw_stream(request: web.Request) -> web.Response:
    """`GET /reef/records/{id}/raw`: the event stream as it came, where it was kept."""
    receipt = _receipt(request)
    return await house_of(request).reading(
        lambda reader: _bytes(reader, receipt, reader.raw_bytes(receipt), "raw stream")
    )


def _receipt(request: web.Request) -> str:
    receipt = request.match_info["id"]
    to_blob(receipt)
    return receipt


def _bytes(reader: Any, receipt: str, body: bytes | None, what: str) -> web.Response:
    if body is None:
        pruned = reader.record(receipt)["pruned_at"]
        why = f"; body pruned on {pruned[:10]}, as bodies outgrew what is kept" if pruned else ""
        raise NotFound(f"this record has no {what}{why}", f"reef records show {receipt}")
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
    Route("GET", "/reef/records/search", search_records),
    Route("GET", "/reef/records/{id}", show_record),
    Route("GET", "/reef/records/{id}/request", request_body),
    Route("GET", "/reef/records/{id}/response", response_body),
    Route("GET", "/reef/records/{id}/raw", raw_stream),
]
