"""The record of one running call: opened before its first reply byte, flushed while it streams, settled once.

A failure here never reaches the client as anything but a missing receipt.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from reef.errors import ReefError
from reef.gateway.dialect import ReplyFacts
from reef.gateway.waits import Wait, Waits
from reef.records.calls import (
    LARGE,
    Body,
    OpenRecord,
    Settlement,
    State,
    attach_request,
    flush_progress,
    make_body,
    settle_records,
    store_records,
)
from reef.records.large import store_parts
from reef.records.writer import Grouped, Writer

OPEN_WAIT_S = 0.25
"""How long a reply waits, from its first byte, for its row to be on disk."""
GRACE_S = 0.01
"""How long the row of a call that does not stream waits for the reply, to be written together with its end."""
SETTLE_WAIT_S = 1.0
"""How long the end of a reply waits for the row's end to be on disk."""

Written = TypeVar("Written", bound="asyncio.Future[Any]")


class Patience:
    """How long the calls of one gateway wait for their records."""

    def __init__(self) -> None:
        self.row = Waits(GRACE_S)
        self.opened = Waits(OPEN_WAIT_S)
        self.settled = Waits(SETTLE_WAIT_S)


class Recording:
    """Writes one record. Every method returns at once except the two that wait, and those wait for a bounded time."""

    def __init__(
        self,
        writer: Writer,
        receipt: str,
        redact: bool,
        started: float,
        patience: Patience,
        on_loss: Callable[[], None],
    ) -> None:
        """`started`: when the call came, on the monotonic clock.

        `on_loss` is called once when something of the record could not be written, however much of it.
        """
        self.receipt = receipt
        self.started = started
        self.first_byte: float | None = None
        self.settled = False
        self.attempts: list[dict[str, Any]] = []
        self._writer = writer
        self._redact = redact
        self._row: OpenRecord | None = None
        self._size = 0
        self._patience = patience
        self._grace: Wait | None = None
        self._opened: asyncio.Future[None] | None = None
        self._problem: str | None = None
        self._work: set[asyncio.Future[None]] = set()
        self._on_loss: Callable[[], None] | None = on_loss
        # Shared with the writer's thread; each is set once, and in this order: the end, then a look at the claim.
        self._end: Settlement | None = None
        self._claimed = False

    def open(self, row: OpenRecord, body: bytes) -> None:
        """Have the row written: a stream's at once, any other's a moment later, so that a quick reply costs one write.

        A large body follows by itself, prepared outside the writer's thread.
        """
        self._row = row
        if len(body) > LARGE:
            row.request, row.request_bytes = None, len(body)
            self._queue_row()
            self._keep(self._attach(body))
            return
        row.request = body
        self._size = len(body)
        if row.streaming:
            self._queue_row()
        else:
            self._grace = self._patience.row.begin(self._queue_row)

    def give_up(self, problem: str) -> None:
        """Make no record; the reply says `problem` in place of a receipt."""
        self._problem = problem
        self._lose()

    def first_byte_came(self) -> None:
        """Note that the first byte of the reply's body has come."""
        if self.first_byte is None:
            self.first_byte = time.monotonic()

    async def opened(self) -> str | None:
        """Wait until the row is on disk, at most 250 ms. Returns None when it is, else why there is no receipt."""
        if self._grace is not None:
            self._queue_row()
        if self._problem is None and self._opened is not None:
            if not await self._patience.opened.done(self._opened):
                self.let_go(self._opened)
                self._problem = "the record store does not answer in time"
            elif (error := self._opened.exception()) is not None:
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
            found.reply_name = facts.name
            found.prompt_tokens = facts.prompt_tokens
            found.completion_tokens = facts.completion_tokens
            found.cached_tokens = facts.cached_tokens
        return found

    def settle(self, end: Settlement) -> asyncio.Future[Any] | None:
        """Queue the end of the record; later calls do nothing. Returns what to wait for, None when there is nothing.

        Large bodies are prepared outside the writer's thread first.
        """
        if self.settled:
            return None
        self.settled = True
        if self._row is None:
            return None
        large = [name for name in ("response", "raw") if _size(getattr(end, name)) > LARGE]
        if not large:
            self._end = end
        if self._grace is not None:
            self._queue_row()
        if self._opened is None:
            return None
        if large:
            return self._keep(self._settle_large(end, large))
        if not self._claimed:
            # The row is not being written yet: it will be written with its end.
            return self._opened
        try:
            # A call whose row is lost was counted with it, and is one loss and not two.
            size = _size(end.response) + _size(end.raw)
            future = self._writer.begin(_Written(self, end), size=size, essential=_succeeded(self._opened))
        except ReefError:
            self._lose()
            return None
        return self._watched(future)

    def abandon(self, end: Settlement) -> None:
        """`settle` for a call whose client has gone: nobody will wait for any of it."""
        self.let_go(self.settle(end))
        self.let_go(self._opened)

    def let_go(self, future: asyncio.Future[Any] | None) -> None:
        """Do not wait for `future`: its failure is counted and needs no second report."""
        if future is not None:
            future.add_done_callback(_looked_at)

    async def stored(self, settling: asyncio.Future[Any] | None) -> bool:
        """Wait for the end of the record, at most a second. Returns whether it is on disk."""
        if settling is None:
            return False
        if self._work:
            await asyncio.wait({settling, *self._work}, timeout=SETTLE_WAIT_S)
        else:
            await self._patience.settled.done(settling)
        if not settling.done():
            self.let_go(settling)
        return _succeeded(settling)

    def _queue_row(self) -> None:
        if self._grace is not None:
            self._grace.end()
            self._grace = None
        try:
            self._opened = self._watched(self._writer.begin(_Written(self), size=self._size))
        except ReefError as error:
            self._problem = error.message
            self._lose()

    def claimed(self) -> tuple[OpenRecord, Settlement | None]:
        """In the writer's thread: the row, with its end when that is known by now. A later end is written by itself."""
        assert self._row is not None
        self._claimed = True
        return self._row, self._end

    async def _settle_large(self, end: Settlement, names: list[str]) -> None:
        for name in names:
            body = await asyncio.to_thread(make_body, getattr(end, name), self._redact)
            await store_parts(self._writer, body)
            setattr(end, name, body)
        await self._writer.write(_Written(self, end))

    async def _attach(self, body: bytes) -> None:
        prepared = await asyncio.to_thread(make_body, body, self._redact)
        await store_parts(self._writer, prepared)

        def write(conn: sqlite3.Connection) -> None:
            attach_request(conn, self.receipt, prepared)

        await self._writer.write(write)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` beside the call; it goes on when the call has ended."""
        task = asyncio.create_task(work)
        self._work.add(task)
        self._watched(task)
        return task

    def _watched(self, future: Written) -> Written:
        """Notice when `future` fails, whoever else waits for it."""
        future.add_done_callback(self._look)
        return future

    def _look(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is not None:
            self._lose()

    def _lose(self) -> None:
        if self._on_loss is not None:
            self._on_loss()
            self._on_loss = None


class _Written(Grouped):
    """The operation that writes the row of a recording, or an end that did not come in time for it."""

    def __init__(self, recording: Recording, end: Settlement | None = None) -> None:
        self._recording = recording
        self._end = end

    @classmethod
    def together(cls, conn: sqlite3.Connection, operations: Sequence[_Written]) -> None:
        # A row waits in front of its end, so that all rows may go first.
        if rows := [written._recording for written in operations if written._end is None]:
            store_records(conn, (recording.claimed() for recording in rows))
        if ends := [(written._recording.receipt, written._end) for written in operations if written._end is not None]:
            settle_records(conn, ends)


def _size(body: bytes | Body | None) -> int:
    return 0 if body is None else len(body) if isinstance(body, bytes) else body.prepared.size


def _succeeded(future: asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _looked_at(future: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody waits for, so that the loop does not report it a second time."""
    if not future.cancelled():
        future.exception()
