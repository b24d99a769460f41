"""Import: records and reports made elsewhere, one at a time or as a batch that is stored whole or not at all."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aiohttp import web

from reef.daemon.house import House, house_of
from reef.daemon.naming import asked_name, caller_of
from reef.daemon.replies import json_reply
from reef.daemon.table import Route
from reef.errors import ReefError, TooLarge
from reef.gateway.imported import read_batch, read_envelope
from reef.records.calls import LARGE
from reef.records.importing import ImportedCall, Item, store_imported
from reef.records.large import store_parts

BATCH_BYTES = 1024 * 1024
"""A batch is one transaction, for which no call's row is to wait long. A larger record comes alone."""
NEW = "x-reef-imported"
"""Header that says how many of the receipts are of records that were not here before."""


async def import_record(request: web.Request) -> web.Response:
    """`POST /reef/records`: `{agent_record_id, request_type, payload}`; the same id with the same content is one."""
    body = await request.read()
    item = await _read(request, body, partial(read_envelope, body))
    try:
        receipts, new = await _store(request, [item], len(body))
    except ReefError as error:
        raise type(error)(error.message.removeprefix("records[0]: "), error.hint) from None
    return json_reply(receipts[0], headers={NEW: str(new)})


async def import_batch(request: web.Request) -> web.Response:
    """`POST /reef/records/batch`: `{records: [1..1000]}`, all of it or nothing, a receipt for each in its order."""
    if (request.content_length or 0) > BATCH_BYTES:
        raise _too_large(request.content_length or 0)
    body = await request.read()
    if len(body) > BATCH_BYTES:
        raise _too_large(len(body))
    items = await _read(request, body, lambda *rules: list(read_batch(body, *rules)))
    receipts, new = await _store(request, items, len(body))
    return json_reply({"records": receipts}, headers={NEW: str(new)})


def _too_large(size: int) -> TooLarge:
    return TooLarge(f"the batch has {size} bytes, the limit is {BATCH_BYTES}", "send a large record to /reef/records")


async def _read(request: web.Request, body: bytes, read: Any) -> Any:
    house, caller = house_of(request), caller_of(request)
    rules = (caller.kind == "person", house.settings.records.redact)
    return await asyncio.to_thread(read, *rules) if len(body) > LARGE else read(*rules)


async def _store(request: web.Request, items: list[Item], size: int) -> tuple[list[dict[str, Any]], int]:
    house: House = house_of(request)
    scenario, _ = await house.scenarios.for_call(asked_name(request))
    if size > BATCH_BYTES:
        for item in items:
            await _parts_first(house, item)
    new = await house.writer.write(lambda conn: store_imported(conn, scenario.name, items), size=size, essential=False)
    receipts = [
        {
            "agent_record_id": item.sent_id,
            "scenario": scenario.name,
            "request_type": "inference" if isinstance(item, ImportedCall) else "report",
        }
        for item in items
    ]
    return receipts, new


async def _parts_first(house: House, item: Item) -> None:
    """Store the parts of a large record in short transactions, so that its row's own is short too."""
    if isinstance(item, ImportedCall):
        for body in (item.call.request, item.end.response, item.end.raw):
            if body is not None and not isinstance(body, bytes):
                await store_parts(house.writer, body)


ROUTES = [
    Route("POST", "/reef/records", import_record, in_path=True),
    Route("POST", "/reef/records/batch", import_batch, in_path=True),
]
