"""The record of one running call: opened before its first reply byte, flushed while it streams, settled once.

A failure here never reaches the client as anything but a missing receipt.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine
from typing import Any

from reef.errors import ReefError
from reef.gateway.dialect import ReplyFacts
from reef.records.calls import (
    LARGE,
    Body,
    OpenRecord,
    Settlement,
    State,
    attach_request,
    flush_progress,
    make_body,
    open_record,
    settle_record,
)
from reef.records.large import store_parts
from reef.records.writer import Writer

OPEN_WAIT_S = 0.25
"""How long a reply waits, from its first byte, for its row to be on disk."""
SETTLE_WAIT_S = 1.0
"""How long the end of a reply waits for the row's end to be on disk."""


class Recording:
    """Writes one record. Every method returns at once except the two that wait, and those wait for a bounded time."""

    def __init__(self, writer: Writer, receipt: str, redact: bool, started: float) -> None:
        """`started`: when the call came, on the monotonic clock."""
        self.receipt = receipt
        self.started = started
        self.first_byte: float | None = None
        self.settled = False
        self.attempts: list[dict[str, Any]] = []
        self._writer = writer
        self._redact = redact
        self._opened: asyncio.Future[int] | None = None
        self._problem: str | None = None
        self._work: set[asyncio.Future[None]] = set()

    def open(self, record: OpenRecord, body: bytes) -> None:
        """Begin to write the row. A large body follows by itself, prepared outside the writer's thread."""
        if len(body) > LARGE:
            record.request, record.request_bytes = None, len(body)
            self._keep(self._attach(body))
        else:
            record.request = body

        def write(conn: sqlite3.Connection) -> int:
            return open_record(conn, record)

        try:
            self._opened = self._writer.begin(write, size=0 if record.request is None else len(body))
            self._opened.add_done_callback(_looked_at)
        except ReefError as error:
            self._problem = error.message

    def first_byte_came(self) -> None:
        """Note that the upstream has answered."""
        if self.first_byte is None:
            self.first_byte = time.monotonic()

    async def opened(self) -> str | None:
        """Wait until the row is on disk, at most 250 ms. Returns None when it is, else why there is no receipt."""
        future = self._opened
        if future is None:
            return self._problem or "the call was not recorded"
        if self._problem is not None:
            return self._problem
        if not future.done():
            await asyncio.wait((future,), timeout=OPEN_WAIT_S)
        if not future.done():
            self._problem = "the record store does not answer in time"
        elif (error := future.exception()) is not None:
            self._problem = error.message if isinstance(error, ReefError) else "the record store reports an error"
        return self._problem

    def flush(self, text: bytes) -> None:
        """Store what a running stream has said since the last flush."""
        if not text or self._opened is None:
            return

        def write(conn: sqlite3.Connection) -> None:
            flush_progress(conn, self.receipt, text)

        try:
            self._writer.begin(write, size=len(text), essential=False).add_done_callback(_looked_at)
        except ReefError:
            # The settlement carries the whole text.
            return

    def settlement(self, state: State, facts: ReplyFacts | None = None, **more: Any) -> Settlement:
        """How the call ended, with its times filled in."""
        now = time.monotonic()
        found = Settlement(
            state,
            first_byte_ms=None if self.first_byte is None else (self.first_byte - self.started) * 1000,
            duration_ms=(now - self.started) * 1000,
            attempts=self.attempts or None,
            redact=self._redact,
            **more,
        )
        if facts is not None:
            found.response = facts.body
            found.error = found.error or facts.error
            found.finish_reason = facts.finish_reason
            found.answer_preview = facts.preview or None
            found.prompt_tokens = facts.prompt_tokens
            found.completion_tokens = facts.completion_tokens
            found.cached_tokens = facts.cached_tokens
        return found

    def settle(self, end: Settlement) -> asyncio.Future[None] | None:
        """Queue the end of the record; later calls do nothing. Returns what to wait for, None when there is nothing.

        Large bodies are prepared outside the writer's thread first.
        """
        if self.settled or self._opened is None:
            return None
        self.settled = True
        large = [name for name in ("response", "raw") if _size(getattr(end, name)) > LARGE]
        if large:
            return self._keep(self._settle_large(end, large))
        try:
            future = self._writer.begin(self._operation(end), size=_size(end.response) + _size(end.raw))
        except ReefError:
            return None
        future.add_done_callback(_looked_at)
        return future

    async def stored(self, settling: asyncio.Future[None] | None) -> bool:
        """Wait for the end of the record, at most a second. Returns whether it is on disk."""
        if settling is None:
            return False
        waiting = {settling, *self._work}
        if not all(future.done() for future in waiting):
            await asyncio.wait(waiting, timeout=SETTLE_WAIT_S)
        return settling.done() and not settling.cancelled() and settling.exception() is None

    def _operation(self, end: Settlement) -> Callable[[sqlite3.Connection], None]:
        def write(conn: sqlite3.Connection) -> None:
            settle_record(conn, self.receipt, end)

        return write

    async def _settle_large(self, end: Settlement, names: list[str]) -> None:
        for name in names:
            body = await asyncio.to_thread(make_body, getattr(end, name), self._redact)
            await store_parts(self._writer, body)
            setattr(end, name, body)
        await self._writer.write(self._operation(end))

    async def _attach(self, body: bytes) -> None:
        prepared = await asyncio.to_thread(make_body, body, self._redact)
        await store_parts(self._writer, prepared)

        def write(conn: sqlite3.Connection) -> None:
            attach_request(conn, self.receipt, prepared)

        await self._writer.write(write)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` beside the call; it goes on when the call has ended. The writer counts its failures."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(_looked_at)
        return task


def _size(body: bytes | Body | None) -> int:
    return 0 if body is None else len(body) if isinstance(body, bytes) else body.prepared.size


def _looked_at(future: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody waits for, so that the loop does not report it a second time."""
    if not future.cancelled():
        future.exception()
