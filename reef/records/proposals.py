"""The inbox of proposals: changes that an agent has written in a session, each taken by one step of its scenario.

A proposal without a step waits; with one it is what that step is. Nothing else of its state is kept, so it can neither
be lost nor be used twice: a step that a lost race or a stop ended gives its proposal back, once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from reef.ids import from_blob, new_id, to_blob, utc_now
from reef.records.redact import kept, kept_json

Row = dict[str, Any]
INBOX = 8
"""Proposals of a scenario that wait at the same time."""

SELECT = """SELECT proposals.id, proposals.number, proposals.scenario, proposals.reason, proposals.mutations_json,
 proposals.session, proposals.release_id, proposals.source, proposals.created_at, proposals.step, steps.state,
 steps.version, steps.reason FROM proposals
 LEFT JOIN steps ON steps.scenario = proposals.scenario AND steps.number = proposals.step"""


def add_proposal(
    conn: sqlite3.Connection,
    scenario: str,
    mutations: Sequence[Mapping[str, Any]],
    reason: str,
    source: str,
    session: str | None,
    release_id: str | None,
) -> str | None:
    """Put a proposal into the inbox and return its id; None when the inbox is full."""
    (waiting,) = conn.execute(
        "SELECT count(*) FROM proposals WHERE scenario = ? AND step IS NULL", (scenario,)
    ).fetchone()
    if waiting >= INBOX:
        return None
    (last,) = conn.execute("SELECT max(number) FROM proposals WHERE scenario = ?", (scenario,)).fetchone()
    id = new_id()
    conn.execute(
        "INSERT INTO proposals (id, scenario, number, reason, mutations_json, session, release_id, source, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            to_blob(id), scenario, (last or 0) + 1, kept(reason), kept_json([dict(item) for item in mutations]),
            session, release_id, source, utc_now(),
        ),
    )  # fmt: skip
    return id


def oldest_waiting(conn: sqlite3.Connection, scenario: str) -> Row | None:
    """The proposal whose turn it is, None for an empty inbox."""
    row = conn.execute(
        f"{SELECT} WHERE proposals.scenario = ? AND proposals.step IS NULL ORDER BY proposals.number LIMIT 1",
        (scenario,),
    ).fetchone()
    return None if row is None else shape(row)


def scenarios_waiting(conn: sqlite3.Connection) -> list[str]:
    """The scenarios whose inbox is not empty."""
    return [name for (name,) in conn.execute("SELECT DISTINCT scenario FROM proposals WHERE step IS NULL").fetchall()]


def take_proposal(conn: sqlite3.Connection, id: str, step: int) -> None:
    """Give a proposal to a step."""
    conn.execute("UPDATE proposals SET step = ? WHERE id = ?", (step, to_blob(id)))


def free_proposals(conn: sqlite3.Connection, scenario: str, step: int) -> None:
    """Put what a broken-off step had taken back into the inbox; what was put back before stays with the step."""
    conn.execute(
        "UPDATE proposals SET step = NULL, freed = 1 WHERE scenario = ? AND step = ? AND freed = 0", (scenario, step)
    )


def shape(row: Sequence[Any]) -> Row:
    """A proposal as everything shows it; `state` is `waiting`, else its step's."""
    return {
        "id": from_blob(row[0]),
        "number": row[1],
        "scenario": row[2],
        "reason": row[3],
        "mutations": json.loads(row[4]),
        "session": row[5],
        "release_id": row[6],
        "source": row[7],
        "created_at": row[8],
        "step": row[9],
        "state": "waiting" if row[9] is None else row[10],
        "version": row[11],
        "outcome": row[12],
    }
