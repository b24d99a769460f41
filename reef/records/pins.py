"""Pins: the version of a scenario that stays installed, for one agent or for every agent of it.

The pin of an agent comes before that of all of them. A pin is about what is installed; what is served moves on. The
caller appends the event that tells what it did.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from reef.ids import utc_now

EVERY = ""
"""The adapter of a pin that is for every agent."""


def pin(conn: sqlite3.Connection, scenario: str, adapter: str | None, version: int) -> None:
    """Keep `version` installed for `adapter` (None: for every agent); an earlier pin of the same kind is replaced."""
    conn.execute(
        "INSERT INTO pins (scenario, adapter, version, at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (scenario, adapter) DO UPDATE SET version = excluded.version, at = excluded.at",
        (scenario, adapter or EVERY, version, utc_now()),
    )


def unpin(conn: sqlite3.Connection, scenario: str, adapter: str | None) -> bool:
    """Take a pin away; with None every pin of the scenario. Returns whether there was one."""
    where, values = ("", (scenario,)) if adapter is None else (" AND adapter = ?", (scenario, adapter))
    return conn.execute(f"DELETE FROM pins WHERE scenario = ?{where}", values).rowcount > 0


def pins(conn: sqlite3.Connection, scenario: str | None = None) -> list[dict[str, Any]]:
    """Every pin, or those of a scenario: `{"scenario", "adapter", "version", "at"}`; adapter None is every agent."""
    found = conn.execute(
        "SELECT scenario, adapter, version, at FROM pins WHERE ?1 IS NULL OR scenario = ?1 ORDER BY sequence",
        (scenario,),
    ).fetchall()
    names = ("scenario", "adapter", "version", "at")
    return [dict(zip(names, (row[0], row[1] or None, *row[2:]), strict=True)) for row in found]
