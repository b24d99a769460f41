"""The one writer: a thread with its own connection that commits what is waiting as one group.

An operation is a function of the connection; its exception undoes it alone, and its future resolves after its group's
COMMIT has reached the disk. An operation may be run more than once before that, so it must do nothing but talk to the
connection, and must not begin or end transactions itself. Trouble with the file (locked, full) fails the waiting
futures with `RecordingFailed`; the thread goes on, counts what was lost and writes again as soon as the file allows it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from reef import events
from reef.errors import Unavailable
from reef.records import rows
from reef.records.schema import open_store

log = logging.getLogger("reef.records")
T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]

GROUP_OPERATIONS = 256
GROUP_BYTES = 8 * 1024 * 1024
GATHER_FROM = 5
GATHER_S = 0.001
GATHER_TURNS = 3
"""How long, and how often, a group waits for more when one shortly before it held at least `GATHER_FROM` and more than
are there now. Fewer commits, and less of two threads taking the interpreter from each other: under load a call waits no
longer, as all of it gets done sooner."""
BACKLOG_BYTES = 256 * 1024 * 1024
"""Bytes that may wait for a slow disk before further operations are refused."""


class RecordingFailed(Unavailable):
    """The store could not be written: locked, full, damaged or closed. Nothing of the operation was kept."""

    code = "recording_failed"


class Grouped(ABC):
    """An operation that costs less when it runs with others like it than alone. Its result is None."""

    @classmethod
    @abstractmethod
    def together(cls, conn: sqlite3.Connection, operations: Sequence[Any]) -> None:
        """Run several operations of this class, in this order. When it raises, each is run by itself instead."""

    def __call__(self, conn: sqlite3.Connection) -> None:
        """Run this one alone."""
        self.together(conn, (self,))


class _Item:
    """One waiting operation and who waits for it."""

    __slots__ = ("essential", "future", "loop", "operation", "outcome", "size")

    def __init__(
        self,
        operation: Operation[Any],
        future: Future[Any] | asyncio.Future[Any],
        loop: asyncio.AbstractEventLoop | None,
        size: int,
        essential: bool,
    ) -> None:
        self.operation = operation
        self.future = future
        self.loop = loop
        self.size = size
        self.essential = essential
        self.outcome: tuple[bool, Any] = (False, None)


class Writer:
    """Write access to the store at `path`; making or migrating it on the way. One per store, in the daemon."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_store(path)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self.cpu_s = 0.0
        """Processor time that the thread has taken, up to the last operation whose future is done."""
        self._closed = False
        self._large_group = 0
        self._lost = 0
        self._lost_told = 0
        self._failure: str | None = None
        self._after_commit: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="reef-writer", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Essential operations that were not written since the start."""
        return self._lost

    @property
    def failure(self) -> str | None:
        """Why the last group could not be written; None while writing works."""
        return self._failure

    def after_commit(self, listener: Callable[[], None]) -> None:
        """Have `listener` called in the writer's thread after each commit; it must return at once and not raise."""
        self._after_commit.append(listener)

    def submit(self, operation: Operation[T], *, size: int = 0, essential: bool = True) -> Future[T]:
        """Queue `operation` and return a future of its result, resolved when the result is on disk.

        `size` is about how many bytes it writes, `essential=False` keeps a failure out of `lost` (progress that the
        next flush repeats). The future raises what the operation raised, or RecordingFailed.
        """
        future: Future[T] = Future()
        self._put(_Item(operation, future, None, size, essential))
        return future

    async def write(self, operation: Operation[T], *, size: int = 0, essential: bool = True) -> T:
        """`submit` for a coroutine: wait for the group that holds `operation`. Cancelling does not undo it."""
        return await self.begin(operation, size=size, essential=essential)

    def begin(self, operation: Operation[T], *, size: int = 0, essential: bool = True) -> asyncio.Future[T]:
        """`write` whose waiting comes later: queue `operation` and return a future of the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Item(operation, future, loop, size, essential))
        return future

    def close(self) -> None:
        """Write what is waiting, then close the connection. Later operations fail with RecordingFailed."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, item: _Item) -> None:
        # The lock orders this against `close`: nothing is queued behind the end mark, where nobody would answer it.
        with self._lock:
            if self._closed:
                raise RecordingFailed("the record store is closed")
            if item.size and self._waiting_bytes + item.size > BACKLOG_BYTES and self._waiting_bytes:
                self._lost += item.essential
                raise RecordingFailed("the disk is too slow: too much is waiting to be recorded")
            self._waiting_bytes += item.size
            self._queue.put(item)

    def _run(self) -> None:
        end = False
        while not end:
            group, end = self._next_group()
            self._large_group = max(len(group), self._large_group - 1)
            if group:
                try:
                    self._write_group(group)
                except Exception as error:
                    # The edge of the thread: a fault of reef's own must not leave anybody waiting for ever.
                    log.exception("the writer failed")
                    self._roll_back()
                    self._fail(group, error)
                self.cpu_s = time.thread_time()
                with self._lock:
                    self._waiting_bytes -= sum(item.size for item in group)
                self._resolve(group)
        self._close()

    def _close(self) -> None:
        """Close the connection and leave one file: a reader that closes later could not bring the rest into it."""
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            # Nothing is lost: whoever opens the store next finds it beside the file.
            log.info("the write-ahead log stays: %s", error)
        self._connection.close()

    def _next_group(self) -> tuple[list[_Item], bool]:
        """Wait for one operation and take what else is there, within the group's limits."""
        group: list[_Item] = []
        size = 0
        item = self._queue.get()
        if item is not None and self._large_group >= GATHER_FROM:
            self._gather()
        while item is not None:
            group.append(item)
            size += item.size
            if len(group) >= GROUP_OPERATIONS or size >= GROUP_BYTES:
                return group, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _gather(self) -> None:
        """Wait until as many are there as shortly before, or no longer than they take who come at all."""
        for _ in range(GATHER_TURNS):
            if self._large_group <= self._queue.qsize() + 1:
                return
            time.sleep(GATHER_S)

    def _write_group(self, group: list[_Item]) -> None:
        error = self._attempt(group)
        if error is None:
            self._failure = None
        elif len(group) > 1 and _code(error) == sqlite3.SQLITE_FULL:
            # One large body must not take the small rows of its group down with it.
            for item in group:
                if (alone := self._attempt([item])) is not None:
                    self._fail([item], alone)
        else:
            self._fail(group, error)

    def _attempt(self, group: list[_Item]) -> sqlite3.Error | None:
        """Run and commit `group`; on trouble with the file nothing of it is kept and the error is returned."""
        connection, lost = self._connection, self._lost
        try:
            self._begin(lost)
            if len(group) == 1:
                self._run_alone(connection, group[0])
            else:
                self._run_together(connection, group, lost)
            if connection.in_transaction:
                connection.execute("COMMIT")
                self._lost_told = lost
        except sqlite3.Error as error:
            self._roll_back()
            return error
        for listener in self._after_commit:
            listener()
        return None

    def _begin(self, lost: int) -> None:
        """Begin a transaction; the first after a loss says how much was lost."""
        self._connection.execute("BEGIN IMMEDIATE")
        if lost != self._lost_told:
            rows.add_event(self._connection, events.RECORDING_LOST, None, {"lost": lost - self._lost_told})

    def _run_together(self, connection: sqlite3.Connection, group: list[_Item], lost: int) -> None:
        """Run a group without savepoints; when one of it raises, start over with one for each."""
        try:
            for kind, run in groupby(group, _kind):
                items = list(run)
                if kind is not None:
                    kind.together(connection, [item.operation for item in items])
                for item in items:
                    item.outcome = (True, item.operation(connection) if kind is None else None)
        except Exception as error:
            if _is_file_trouble(error):
                raise
            connection.execute("ROLLBACK")
            self._begin(lost)
            for item in group:
                _run_in_savepoint(connection, item)

    def _run_alone(self, connection: sqlite3.Connection, item: _Item) -> None:
        """A group of one needs no savepoint: its transaction is its own."""
        try:
            item.outcome = (True, item.operation(connection))
        except Exception as error:
            if _is_file_trouble(error):
                raise
            item.outcome = (False, error)
            connection.execute("ROLLBACK")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                # SQLite has rolled back by itself.
                return

    def _fail(self, group: list[_Item], error: Exception) -> None:
        self._failure = str(error)
        for item in group:
            item.outcome = (False, RecordingFailed(f"the record store could not be written: {error}", "reef status"))
        with self._lock:
            self._lost += sum(item.essential for item in group)

    def _resolve(self, group: list[_Item]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Item]] = {}
        for item in group:
            if item.loop is None:
                _settle(item)
            else:
                by_loop.setdefault(item.loop, []).append(item)
        for loop, items in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle_all, items)
            except RuntimeError:
                # The loop was closed while its operations were written: nobody waits any more.
                continue


def _kind(item: _Item) -> type[Grouped] | None:
    operation = item.operation
    return type(operation) if isinstance(operation, Grouped) else None


def _run_in_savepoint(connection: sqlite3.Connection, item: _Item) -> None:
    connection.execute("SAVEPOINT operation")
    try:
        item.outcome = (True, item.operation(connection))
    except Exception as error:
        if _is_file_trouble(error):
            raise
        connection.execute("ROLLBACK TO operation")
        item.outcome = (False, error)
    connection.execute("RELEASE operation")


def _is_file_trouble(error: Exception) -> bool:
    """Whether `error` is about the file and not about this operation's own statement."""
    return _code(error) in _FILE_TROUBLE


def _code(error: Exception) -> int | None:
    """SQLite's primary result code of an error; None for one that did not come from SQLite."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


_FILE_TROUBLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
}


def _settle(item: _Item) -> None:
    future = item.future
    if isinstance(future, Future):
        if not future.set_running_or_notify_cancel():
            return
    elif future.done():
        return
    good, value = item.outcome
    if good:
        future.set_result(value)
    else:
        future.set_exception(value)


def _settle_all(items: Iterable[_Item]) -> None:
    for item in items:
        _settle(item)
