"""Calls as the gateway records them, in one line each."""

from __future__ import annotations

from typing import Any

from reef.ids import new_id
from reef.records.calls import OpenRecord, Settlement, open_record, settle_record
from reef.records.writer import Writer


def opened(writer: Writer, request: bytes = b'{"messages":[]}', **fields: Any) -> str:
    """Open a record and return its receipt once it is on disk."""
    call = OpenRecord(
        **{
            "receipt": new_id(),
            "scenario": "default",
            "dialect": "chat",
            "route": "/v1/chat/completions",
            "request": request,
        }
        | fields
    )
    writer.submit(lambda conn: open_record(conn, call)).result(60)
    return call.receipt


def settled(writer: Writer, receipt: str, state: Any = "complete", **fields: Any) -> None:
    """Settle a record and wait until that is on disk."""
    writer.submit(lambda conn: settle_record(conn, receipt, Settlement(state, **fields))).result(60)


def recorded(writer: Writer, request: bytes = b'{"messages":[]}', response: bytes = b"{}", **fields: Any) -> str:
    """A complete call."""
    receipt = opened(writer, request, **fields)
    settled(writer, receipt, response=response, status=200)
    return receipt
