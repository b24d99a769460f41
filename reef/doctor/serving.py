"""The daemon that runs now, or that none does: whose it is, what it lost, and whether its upstream answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from reef import __version__, events
from reef.client import Client, read_discovery, running
from reef.doctor.check import LATELY, Check, counted, lately
from reef.errors import ReefError
from reef.paths import Paths
from reef.records.schema import open_readonly

_STATES = {"ready": "ok", "starting": "warn", "failed": "bad", "down": "bad"}


def check(paths: Paths) -> Iterator[Check]:
    """Every check of the daemon; without one, what it left."""
    try:
        found = running(paths)
    except ReefError as error:
        yield Check("daemon", "bad", error.message, error.hint)
        return
    if found is None:
        stale = read_discovery(paths)
        told = f"; what answers at {stale['url']} is another program" if stale else ""
        yield Check("daemon", "warn", f"the daemon does not run{told}", "reef up")
        yield losses(paths, None)
        return
    if found.get("version") != __version__:
        sentence = f"the daemon is reef {found.get('version')}, this command is reef {__version__}"
        yield Check("daemon", "bad", sentence, "reef down && reef up")
        return
    try:
        with Client(found, paths) as client:
            status = client.status()
    except ReefError as error:
        yield Check("daemon", "bad", error.message, error.hint)
        return
    yield Check("daemon", "ok", f"reef {__version__} answers at {found['url']}, pid {found['pid']}")
    yield losses(paths, status.get("records") or {}, str(status["started_at"]))
    yield upstream(status.get("engine") or {})


def losses(paths: Paths, records: dict[str, Any] | None, started_at: str | None = None) -> Check:
    """Calls that were answered and could not be recorded: the running daemon's own count, and what the store tells of
    those before it. The store counts what could not be written, which for one call may be two things.
    """
    if records and records.get("failure"):
        sentence = f"calls are not recorded now: {records['failure']}"
        return Check("recording", "bad", sentence, f"df -h {paths.data}")
    lost = int((records or {}).get("lost") or 0) + _told(paths, started_at)
    if lost:
        sentence = f"{counted(lost, 'call')} of the last {LATELY.days} days could not be recorded; recording goes on"
        return Check("recording", "warn", sentence, f"df -h {paths.data}; reef logs")
    return Check("recording", "ok", f"no call of the last {LATELY.days} days went unrecorded")


def _told(paths: Paths, before: str | None) -> int:
    try:
        connection = open_readonly(paths.database)
    except ReefError:
        # The check of the store says what is wrong with it.
        return 0
    asked = "SELECT coalesce(sum(json_extract(ids_json, '$.lost')), 0) FROM events WHERE kind = ? AND at >= ?"
    asked += " AND (? IS NULL OR at < ?)"
    try:
        return int(connection.execute(asked, (events.RECORDING_LOST, lately(), before, before)).fetchone()[0])
    except sqlite3.DatabaseError:
        # The same: a damaged page is named there.
        return 0
    finally:
        connection.close()


def upstream(engine: dict[str, Any]) -> Check:
    """Whether what answers model calls is there."""
    state = str(engine.get("state") or "down")
    named = " ".join(str(engine[key]) for key in ("name", "model") if engine.get(key))
    detail = f": {engine['detail']}" if engine.get("detail") else ""
    found = _STATES.get(state, "warn")
    sentence = f"{named or 'the engine'} is {state}{detail}"
    if found == "ok":
        return Check("engine", "ok", sentence)
    return Check("engine", "bad" if found == "bad" else "warn", sentence, engine.get("hint") or "reef status")
