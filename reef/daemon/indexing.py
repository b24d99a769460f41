"""The background pass that fills the search index: soon when nothing else is to do, hardly noticed when something is.

A thread of its own reads what records say; the one writer gets it in slices so small that a call's row behind one waits
for some milliseconds. While calls come in one behind the other, the pass waits for a gap between them; when there is
none for long, it goes on and rests nine times as long as it and its slices took processor time. Without calls it rests
as long again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from reef.errors import ReefError
from reef.records import search
from reef.records.schema import open_readonly
from reef.records.texts import Extracted, extract, unreadable
from reef.records.writer import Writer

log = logging.getLogger("reef.daemon")

SHARE_UNDER_LOAD = 0.1
SHARE_ALONE = 0.5
SETTLE_S = 1.0
"""Time that records have to settle in after a commit, before the pass looks at them."""
GAP_S = 0.25
GIVE_WAY_S = 10.0
"""How long it waits for a gap of `GAP_S` without a call."""
SLICE_CHARS = 64 * 1024
SLICE_RECORDS = 16
SLICE_S = 0.02
"""A slice is what comes first of these: so much new text, so many records, so much time to read them."""
MERGES = 32
MERGED_PAGES = 16
"""The index is put in order after each slice: so often at most, so many pages at a time."""
_RETRY_S = 5.0
_CACHE_KIB = 256


class Indexing:
    """The pass of one store. It looks again after each commit of the writer's."""

    def __init__(self, writer: Writer, database: Path) -> None:
        self.cpu_s = 0.0
        """Processor time that the pass and its slices in the writer have taken since the start."""
        self._writer = writer
        self._database = database
        self._news = threading.Event()
        self._stop = threading.Event()
        self._seen = 0
        self._thread = threading.Thread(target=self._run, name="reef-index", daemon=True)

    def start(self) -> None:
        """Begin with what an earlier daemon left."""
        self._writer.after_commit(self._news.set)
        self._news.set()
        self._thread.start()

    def stop(self) -> None:
        """End after the slice that is being written."""
        self._stop.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._news.wait()
            self._news.clear()
            if self._stop.wait(SETTLE_S):
                return
            try:
                self._fill()
            except (ReefError, sqlite3.Error) as error:
                # A store that is full or locked, or a piece that is lost: nothing of the index is wrong by that.
                log.warning("the search index waits: %s", error)
                self._news.set()
                self._stop.wait(_RETRY_S)
            except Exception:
                # The edge of the thread: a fault of reef's own is told, and tried again with the next commit.
                log.exception("the search index failed")
                self._stop.wait(_RETRY_S)

    def _fill(self) -> None:
        """Index everything that has settled."""
        conn = open_readonly(self._database)
        try:
            # Every page is read once.
            conn.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            if not search.ready(conn):
                self._writer.submit(search.begin_anew, essential=False).result()
            self._give_way(conn)
            while not self._stop.is_set() and (due := search.next_records(conn, SLICE_RECORDS)):
                used = self._slice(conn, due)
                self.cpu_s += used
                # What the pass writes itself is no event.
                before, self._seen = self._seen, _last_event(conn)
                share = SHARE_ALONE if before == self._seen else SHARE_UNDER_LOAD
                self._stop.wait(used * (1 / share - 1))
        finally:
            conn.close()

    def _give_way(self, conn: sqlite3.Connection) -> None:
        """Wait for a gap between calls."""
        until = time.monotonic() + GIVE_WAY_S
        last = None
        while last != (last := _last_event(conn)) and time.monotonic() < until:
            if self._stop.wait(GAP_S):
                return

    def _slice(self, conn: sqlite3.Connection, due: Sequence[int]) -> float:
        """Index some of these records; returns the processor time that it took, with what the writer did meanwhile."""
        begun, written = time.thread_time(), self._writer.cpu_s
        found: list[Extracted] = []
        size = 0
        for sequence in due:
            record = _extracted(conn, sequence)
            found.append(record)
            size += search.size_of_news(conn, record)
            if size >= SLICE_CHARS or time.thread_time() - begun >= SLICE_S:
                break
        self._writer.submit(lambda writing: search.index(writing, found), essential=False).result()
        for _ in range(MERGES):
            if not self._writer.submit(lambda writing: search.merge(writing, MERGED_PAGES), essential=False).result():
                break
        return time.thread_time() - begun + self._writer.cpu_s - written


def _extracted(conn: sqlite3.Connection, sequence: int) -> Extracted:
    try:
        return extract(conn, sequence)
    except ReefError as error:
        log.warning("record %d is not in the search index: %s", sequence, error.message)
        return unreadable(conn, sequence)


def _last_event(conn: sqlite3.Connection) -> int:
    return int(conn.execute("SELECT coalesce(max(sequence), 0) FROM events").fetchone()[0])
