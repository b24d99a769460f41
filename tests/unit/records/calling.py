"""Calls as the gateway records them, in one line each, and what makes them wait, fail or meet."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from reef import events
from reef.ids import new_id
from reef.records import rows
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


def add(kind: str = events.ENGINE_CHANGED, **ids: Any) -> Any:
    return lambda conn: rows.add_event(conn, kind, None, ids)


class Hold:
    """Keeps the writer busy, so that what is submitted meanwhile becomes one group."""

    def __init__(self, writer: Writer) -> None:
        self._started, self._go = threading.Event(), threading.Event()
        self.future = writer.submit(self._wait)
        assert self._started.wait(30)

    def _wait(self, conn: sqlite3.Connection) -> None:
        self._started.set()
        assert self._go.wait(30)

    def release(self) -> None:
        self._go.set()
        self.future.result(30)


def limit_pages(writer: Writer, more: int | None) -> None:
    """Make the disk full for SQLite after `more` pages; None lifts that."""

    def set_limit(conn: sqlite3.Connection) -> None:
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        conn.execute(f"PRAGMA max_page_count={pages + more if more is not None else 2**31 - 2}")

    writer.submit(set_limit).result(30)
