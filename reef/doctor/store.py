"""The record store: whether SQLite finds it whole, whether it can grow, and what its own times say of the clock."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reef.doctor.check import Check, counted, size
from reef.errors import NotFound, ReefError, Unavailable
from reef.ids import stamp
from reef.records.schema import SCHEMA_VERSION, open_readonly

WHOLE_BYTES = 256 * 1024 * 1024
"""Up to this size every index is compared with its table; a larger store is only walked through."""
WAL_BYTES = 256 * 1024 * 1024
"""The daemon empties its write-ahead log long before that, unless a reader holds it."""
_LOOKED_AT = 5000
_AHEAD = timedelta(minutes=2)
_BACK_S = 300.0
_FIRST_SECOND = 1_767_225_600
"""2026 began here: a clock that says less was never set, and no certificate would be valid."""


def check(path: Path) -> Iterator[Check]:
    """Every check of the store at `path`; one that cannot be opened is one finding."""
    try:
        connection = open_readonly(path)
    except NotFound:
        yield Check("store", "ok", "there is no record store yet; the first start makes it")
        return
    except Unavailable as error:
        yield Check("store", "warn", error.message, error.hint)
        return
    except ReefError as error:
        yield damaged(path, error.message, error.hint)
        return
    try:
        yield whole(connection, path)
        yield references(connection)
        yield log_size(path)
        yield times(connection)
    except sqlite3.DatabaseError as error:
        yield damaged(path, f"{path} cannot be read to its end: {error}", None)
    finally:
        connection.close()


def damaged(path: Path, what: str, hint: str | None) -> Check:
    """THE STORE IS DAMAGED, and how to take out of it what can be read."""
    if hint is not None and ".recover" not in hint:
        return Check("store", "bad", what, hint)
    sentence = f"THE STORE IS DAMAGED: {what}; stop the daemon, take out what can be read, then restore a backup"
    return Check("store", "bad", sentence, f"reef down; sqlite3 {path} .recover | sqlite3 {path}.recovered")


def whole(connection: sqlite3.Connection, path: Path) -> Check:
    """What SQLite's own check says of every page."""
    held = path.stat().st_size
    pragma = "integrity_check" if held <= WHOLE_BYTES else "quick_check"
    told = [str(row[0]) for row in connection.execute(f"PRAGMA {pragma}(20)")]
    if told != ["ok"]:
        return damaged(path, f"{path}: {told[0].splitlines()[0]} ({counted(len(told), 'fault')} or more)", None)
    looked = "pages, rows and indexes" if pragma == "integrity_check" else "pages and rows"
    return Check("store", "ok", f"{looked} are whole: {size(held)}, schema {SCHEMA_VERSION}")


def references(connection: sqlite3.Connection) -> Check:
    """Whether every part and chain that something points at is there."""
    lost: dict[str, int] = {}
    for _, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        lost[parent] = lost.get(parent, 0) + 1
    if lost:
        named = ", ".join(f"{number:,} of {parent}" for parent, number in sorted(lost.items()))
        sentence = f"rows point at others that are not there ({named}), so some bodies cannot be shown"
        return Check("references", "bad", sentence, "reef restore FILE")
    return Check("references", "ok", "every part and chain that a record needs is there")


def log_size(path: Path) -> Check:
    """Whether the write-ahead log is emptied."""
    log = path.with_name(path.name + "-wal")
    held = log.stat().st_size if log.exists() else 0
    if held > WAL_BYTES:
        sentence = f"the write-ahead log has grown to {size(held)}: a program keeps the store open and reads"
        return Check("log", "warn", sentence, f"fuser -v {log}")
    return Check("log", "ok", f"the write-ahead log takes {size(held)}")


def times(connection: sqlite3.Connection, now: datetime | None = None) -> Check:
    """Whether the clock is set, and whether the times in the store are in the order in which they were written."""
    now = now or datetime.now(UTC)
    if now.timestamp() < _FIRST_SECOND:
        return Check("clock", "bad", f"the system's clock says {now:%Y-%m-%d}, which is long past", "timedatectl")
    newest = "SELECT at FROM (SELECT at, sequence FROM events ORDER BY sequence DESC LIMIT ?) ORDER BY sequence"
    stamps = [str(row[0]) for row in connection.execute(newest, (_LOOKED_AT,))]
    later = max(stamps, default="")
    if later > stamp(now + _AHEAD):
        return Check(
            "clock", "warn", f"the store holds a time in the future: {later}; it is now {stamp(now)}", "date -u"
        )
    back = max((_seconds(before) - _seconds(after) for before, after in itertools.pairwise(stamps)), default=0)
    if back > _BACK_S:
        sentence = f"the clock was set back by {back / 60:,.0f} minutes while reef ran; order is kept, times are not"
        return Check("clock", "warn", sentence, "timedatectl")
    return Check("clock", "ok", f"the clock says {now:%Y-%m-%d %H:%M} UTC, and no stored time contradicts it")


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return time.time()
