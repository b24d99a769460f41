"""What the daemon writes about a step, each as one operation for the writer: begun, told, settled, found broken off.

Every operation looks at the state it finds before it changes it, so an ask is settled exactly once whatever happens
twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reef import events
from reef.ids import from_blob
from reef.learning.context import Rejected
from reef.learning.recipe import AskInput, ProposalInput
from reef.records import proposals, rows
from reef.versions.catalog import BROKEN_OFF, consume, free_ask

MAX_REJECTED = 25
STOPPED = "the daemon stopped"


@dataclass(frozen=True)
class Begun:
    """A step that has its row."""

    scenario: str
    number: int
    asks: tuple[AskInput, ...]
    proposals: tuple[ProposalInput, ...] = ()


@dataclass(frozen=True)
class ScenarioFacts:
    """What a step needs of its scenario's row."""

    name: str
    recipe: str
    adapter: str
    config: dict[str, Any]


def scenario_facts(conn: sqlite3.Connection, scenario: str) -> ScenarioFacts | None:
    """The scenario's row, or None when it is not there or its creation has not ended."""
    row = conn.execute(
        "SELECT name, recipe, adapter, config_json FROM scenarios WHERE name = ? AND state = 'ready'", (scenario,)
    ).fetchone()
    return None if row is None else ScenarioFacts(row[0], row[1], row[2], json.loads(row[3] or "{}"))


def waiting(conn: sqlite3.Connection) -> list[str]:
    """The scenarios that have a queued ask or a proposal that waits."""
    asks = conn.execute("SELECT DISTINCT scenario FROM asks WHERE state = 'queued'").fetchall()
    return sorted({name for (name,) in asks} | set(proposals.scenarios_waiting(conn)))


def begin(conn: sqlite3.Connection, facts: ScenarioFacts) -> Begun | None:
    """Give the oldest queued ask of the scenario a step, else the oldest proposal; None without both."""
    row = conn.execute(
        "SELECT id, number, text, session, release_id, requires_json FROM asks"
        " WHERE scenario = ? AND state = 'queued' ORDER BY number LIMIT 1",
        (facts.name,),
    ).fetchone()
    if row is None:
        return _begin_proposal(conn, facts)
    ask = AskInput(from_blob(row[0]), int(row[1]), row[2], row[3], row[4], tuple(json.loads(row[5] or "[]")))
    number = rows.add_step(conn, facts.name, recipe=facts.recipe, asks=[ask.id], state="running")
    rows.set_ask(conn, ask.id, state="running", step=number)
    rows.add_event(conn, events.STEP_STARTED, facts.name, {"step": number}, "running")
    rows.add_event(
        conn, events.ASK_CHANGED, facts.name, {"ask": ask.id, "number": ask.number, "step": number}, "running"
    )
    return Begun(facts.name, number, (ask,))


def _begin_proposal(conn: sqlite3.Connection, facts: ScenarioFacts) -> Begun | None:
    row = proposals.oldest_waiting(conn, facts.name)
    if row is None:
        return None
    found = ProposalInput(
        row["id"], row["number"], row["reason"], tuple(row["mutations"]), row["session"], row["release_id"]
    )
    number = rows.add_step(conn, facts.name, recipe=facts.recipe, asks=[], state="running", proposer="agent")
    proposals.take_proposal(conn, found.id, number)
    rows.add_event(conn, events.STEP_STARTED, facts.name, {"step": number}, "running")
    return Begun(facts.name, number, (), (found,))


def rejected_before(conn: sqlite3.Connection, scenario: str) -> list[Rejected]:
    """The last refused changes of a scenario, oldest first."""
    found = conn.execute(
        "SELECT number, summary, reason, mutations_json, evaluation_json FROM steps"
        " WHERE scenario = ? AND state = 'rejected' ORDER BY number DESC LIMIT ?",
        (scenario, MAX_REJECTED),
    ).fetchall()
    return [
        Rejected(number, summary or "", reason or "", json.loads(mutations or "[]"), _ran(evaluation))
        for number, summary, reason, mutations, evaluation in reversed(found)
    ]


def last_state(conn: sqlite3.Connection, scenario: str) -> Any:
    """The JSON value that the recipe left with its last step, or None."""
    row = conn.execute(
        "SELECT state_json FROM steps WHERE scenario = ? AND state_json IS NOT NULL ORDER BY number DESC LIMIT 1",
        (scenario,),
    ).fetchone()
    return json.loads(row[0]) if row else None


def tell(conn: sqlite3.Connection, step: Begun, kind: str, text: str, failed: bool) -> None:
    """One line of activity."""
    rows.add_activity(conn, step.scenario, step.number, kind, text, failed)
    rows.add_event(conn, events.STEP_ACTIVITY, step.scenario, {"step": step.number}, kind)


def note(conn: sqlite3.Connection, scenario: str, number: int, fields: Mapping[str, Any]) -> None:
    """Columns of a running step that are known early."""
    if _state(conn, scenario, number) == "running":
        rows.update_step(conn, scenario, number, **fields)


def settle(
    conn: sqlite3.Connection,
    scenario: str,
    number: int,
    state: str,
    reason: str,
    fields: Mapping[str, Any],
    again: str | None = None,
) -> bool:
    """End a running step and its asks, state and reason alike; nothing when the step was settled before.

    With `again` its asks are queued once more, for this reason. False when the step's version is `publishing`: then the
    publisher has to end it.
    """
    if _state(conn, scenario, number) != "running":
        return True
    if _is_publishing(conn, scenario, number):
        return False
    rows.update_step(conn, scenario, number, state=state, reason=reason, **fields)
    if state in ("rejected", "skipped"):
        consume(conn, scenario, number, fields.get("consumed") or ())
    rows.add_event(conn, events.STEP_ENDED, scenario, {"step": number}, state)
    # An ask has no state of its own for a step whose checks could not be made.
    ask_state = "failed" if state == "could_not_evaluate" else state
    if again is not None:
        proposals.free_proposals(conn, scenario, number)
    for ask, ask_number in _running_asks(conn, scenario, number):
        if again is not None:
            free_ask(conn, rows, scenario, ask, ask_number, again, reason)
            continue
        rows.set_ask(conn, ask, state=ask_state, reason=reason)
        ids = {"ask": ask, "number": ask_number, "step": number}
        rows.add_event(conn, events.ASK_CHANGED, scenario, ids, ask_state)
    return True


def settle_broken_off(conn: sqlite3.Connection) -> list[tuple[str, int]]:
    """Fail every step that an earlier daemon left running, and free its asks and those whose step has ended otherwise.

    An ask is queued again only once: what it asks for may be what ended the daemon. Steps whose version is still
    `publishing` are the publisher's. Returns (scenario, step) of those that were failed.
    """
    running = conn.execute("SELECT scenario, number FROM steps WHERE state = 'running' ORDER BY sequence").fetchall()
    failed = [
        (scenario, int(number))
        for scenario, number in running
        if settle(conn, scenario, number, "failed", STOPPED, {}, again=BROKEN_OFF)
    ]
    lost = conn.execute(
        "SELECT asks.id, asks.scenario, asks.number FROM asks WHERE asks.state = 'running' AND NOT EXISTS ("
        " SELECT 1 FROM steps WHERE steps.scenario = asks.scenario AND steps.number = asks.step"
        " AND steps.state = 'running')"
    ).fetchall()
    for id, scenario, number in lost:
        free_ask(conn, rows, scenario, from_blob(id), number, BROKEN_OFF, STOPPED)
    return failed


def cancel_queued(conn: sqlite3.Connection, ask: str) -> tuple[str, str, int | None] | None:
    """Cancel an ask that is still queued: (scenario, state after it, its step); None for an unknown one."""
    row = conn.execute("SELECT scenario, number, state, step FROM asks WHERE id = ?", (bytes.fromhex(ask),)).fetchone()
    if row is None:
        return None
    scenario, number, state, step = row
    if state == "queued":
        state = "cancelled"
        rows.set_ask(conn, ask, state=state, reason="cancelled before its step began")
        rows.add_event(conn, events.ASK_CHANGED, scenario, {"ask": ask, "number": number}, state)
    return scenario, state, step


def _running_asks(conn: sqlite3.Connection, scenario: str, step: int) -> Sequence[tuple[str, int]]:
    found = conn.execute(
        "SELECT id, number FROM asks WHERE scenario = ? AND step = ? AND state = 'running' ORDER BY number",
        (scenario, step),
    ).fetchall()
    return [(from_blob(id), int(number)) for id, number in found]


def _state(conn: sqlite3.Connection, scenario: str, number: int) -> str | None:
    row = conn.execute("SELECT state FROM steps WHERE scenario = ? AND number = ?", (scenario, number)).fetchone()
    return None if row is None else str(row[0])


def _is_publishing(conn: sqlite3.Connection, scenario: str, step: int) -> bool:
    row = conn.execute(
        "SELECT 1 FROM versions WHERE scenario = ? AND step = ? AND state = 'publishing'", (scenario, step)
    ).fetchone()
    return row is not None


def _ran(evaluation: str | None) -> bool:
    groups = (json.loads(evaluation or "{}") or {}).get("groups")
    return any(
        isinstance(group, dict) and group.get("name") != "admission" and group.get("status") in ("pass", "fail")
        for group in (groups if isinstance(groups, list) else ())
    )
