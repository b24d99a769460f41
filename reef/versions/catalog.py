"""The rows of versions in the database: what is read and written in one publication, as operations for the writer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reef import events
from reef.errors import NotFound
from reef.ids import from_blob, spans, to_blob, utc_now, version_number

REQUEUED = "publishing lost a race, so the ask was queued again"
BROKEN_OFF = "the daemon ended in the middle of its step, so the ask was queued again"


class Rows(Protocol):
    """The writing operations of `reef.records.rows` that a publication needs."""

    def add_version(self, conn: sqlite3.Connection, scenario: str, number: int, **fields: Any) -> Any: ...

    def set_version(self, conn: sqlite3.Connection, scenario: str, number: int, **fields: Any) -> Any: ...

    def update_step(self, conn: sqlite3.Connection, scenario: str, number: int, **fields: Any) -> Any: ...

    def set_ask(self, conn: sqlite3.Connection, id: str, **fields: Any) -> Any: ...

    def free_proposals(self, conn: sqlite3.Connection, scenario: str, step: int) -> Any: ...

    def add_event(
        self, conn: sqlite3.Connection, kind: str, scenario: str | None, ids: dict[str, Any], state: str | None
    ) -> Any: ...


@dataclass(frozen=True)
class Draft:
    """A version row that is not written yet."""

    scenario: str
    number: int
    release_id: str
    content_id: str
    parent: str | None
    operation: str
    summary: str
    step: int | None = None
    components: Sequence[Mapping[str, Any]] = ()
    requires: Sequence[Mapping[str, Any]] = ()
    evaluation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """A version row."""

    scenario: str
    number: int
    release_id: str
    content_id: str
    parent: str | None
    """Release id of the version before."""
    step: int | None
    operation: str
    """`base`, `training`, `rollback`, `promote` or `upgrade`."""
    state: str
    """`publishing`, `published`, `pending` or `conflict`."""
    summary: str
    components: list[dict[str, Any]]
    requires: list[dict[str, Any]]
    evaluation: dict[str, Any]


_COLUMNS = (
    "scenario, number, release_id, content_id, parent, step, operation, state, summary, "
    "components_json, requires_json, evaluation_json"
)


def version(conn: sqlite3.Connection, scenario: str, *, number: int) -> Version | None:
    """Version `number` of a scenario, or None."""
    return _one(conn, "scenario = ? AND number = ?", scenario, number)


def head(conn: sqlite3.Connection, scenario: str) -> Version | None:
    """The version that is served: the last published one, pending ones aside."""
    # A promoted version's pending row is marked published too, and its number is lower: the order still holds.
    return _one(conn, "scenario = ? AND state = 'published' ORDER BY number DESC LIMIT 1", scenario)


def find(conn: sqlite3.Connection, scenario: str, name: str | int) -> Version:
    """The version that a person named: a number, `v3`, or a release id. Raises NotFound, InvalidInput."""
    text = str(name)
    if len(text) == 40:
        found = _one(conn, "scenario = ? AND release_id = ?", scenario, text)
    else:
        found = version(conn, scenario, number=version_number(text))
    if found is None:
        rows = conn.execute("SELECT number FROM versions WHERE scenario = ?", (scenario,)).fetchall()
        there = spans("v", (number for (number,) in rows)) or "none yet"
        shown = text[:12] if len(text) == 40 else f"v{version_number(text)}"
        raise NotFound(
            f"scenario {scenario!r} has no version {shown} (versions: {there})",
            f"reef versions list --scenario {scenario}",
        )
    return found


def bases(conn: sqlite3.Connection, scenario: str) -> list[Version]:
    """The published versions that brought what reef ships: the base and every upgrade, oldest first."""
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM versions WHERE scenario = ? AND state = 'published'"
        " AND operation IN ('base', 'upgrade') ORDER BY number",
        (scenario,),
    ).fetchall()
    return [_version(row) for row in rows]


def only_upgraded(conn: sqlite3.Connection, head: Version, since: str | None) -> bool:
    """Whether nothing but upgrades of what reef ships was published after the release `since`, up to `head`."""
    at: Version | None = head
    while at is not None and at.release_id != since:
        if at.operation != "upgrade" or at.parent is None:
            return False
        at = _one(conn, "scenario = ? AND release_id = ?", at.scenario, at.parent)
    return at is not None


def unfinished(conn: sqlite3.Connection) -> list[Version]:
    """Every row that a stop left `publishing`, oldest first."""
    rows = conn.execute(f"SELECT {_COLUMNS} FROM versions WHERE state = 'publishing' ORDER BY sequence").fetchall()
    return [_version(row) for row in rows]


def next_number(conn: sqlite3.Connection, scenario: str) -> int:
    """The number of the next version. Numbers are never used again, not even those of a conflict."""
    (last,) = conn.execute("SELECT max(number) FROM versions WHERE scenario = ?", (scenario,)).fetchone()
    return int(last or 0) + 1


def open_version(conn: sqlite3.Connection, rows: Rows, draft: Draft, step_fields: Mapping[str, Any]) -> Version:
    """Write the row `publishing` and, with it, what the step consumed."""
    rows.add_version(
        conn,
        scenario=draft.scenario,
        number=draft.number,
        release_id=draft.release_id,
        content_id=draft.content_id,
        parent=draft.parent,
        step=draft.step,
        operation=draft.operation,
        state="publishing",
        summary=draft.summary,
        components_json=_json(list(draft.components)),
        requires_json=_json(list(draft.requires)),
        evaluation_json=_json(dict(draft.evaluation)),
        created_at=utc_now(),
    )
    if draft.step is not None:
        fields = {**step_fields, "candidate": draft.release_id, "version": draft.number}
        rows.update_step(conn, scenario=draft.scenario, number=draft.step, **fields)
        consume(conn, draft.scenario, draft.step, step_fields.get("consumed") or ())
    found = version(conn, draft.scenario, number=draft.number)
    assert found is not None
    return found


def settle_version(conn: sqlite3.Connection, rows: Rows, row: Version, state: str) -> Version:
    """Mark the row `published` or `pending`, its step and asks likewise, and append the events."""
    rows.set_version(conn, scenario=row.scenario, number=row.number, state=state)
    ids = {"version": row.number, "release": row.release_id}
    if state == "published":
        rows.add_event(conn, events.VERSION_PUBLISHED, row.scenario, ids, state)
        rows.add_event(conn, events.HEAD_MOVED, row.scenario, ids, row.operation)
    else:
        rows.add_event(conn, events.VERSION_PENDING, row.scenario, ids, state)
    if row.operation == "promote":
        for number in _pending_with(conn, row):
            rows.set_version(conn, scenario=row.scenario, number=number, state="published")
    if row.step is not None:
        now = utc_now()
        rows.update_step(conn, scenario=row.scenario, number=row.step, state=state, ended_at=now)
        rows.add_event(conn, events.STEP_ENDED, row.scenario, {"step": row.step, "version": row.number}, state)
        for ask, number in _asks(conn, row):
            rows.set_ask(conn, ask, state=state, settled_at=now)
            rows.add_event(conn, events.ASK_CHANGED, row.scenario, {"ask": ask, "number": number}, state)
    found = version(conn, row.scenario, number=row.number)
    assert found is not None
    return found


def mark_conflict(conn: sqlite3.Connection, rows: Rows, row: Version, reason: str) -> None:
    """Mark the row `conflict` and its step failed; its reports are free and its asks queued again, once."""
    rows.set_version(conn, scenario=row.scenario, number=row.number, state="conflict")
    if row.step is None:
        return
    now = utc_now()
    rows.update_step(conn, scenario=row.scenario, number=row.step, state="failed", ended_at=now, reason=reason)
    rows.add_event(conn, events.STEP_ENDED, row.scenario, {"step": row.step}, "failed")
    conn.execute(
        "UPDATE reports SET consumed_by = NULL WHERE scenario = ? AND consumed_by = ?", (row.scenario, row.step)
    )
    rows.free_proposals(conn, row.scenario, row.step)
    for ask, number in _asks(conn, row):
        free_ask(conn, rows, row.scenario, ask, number, REQUEUED, reason)


def free_ask(
    conn: sqlite3.Connection, rows: Rows, scenario: str, ask: str, number: int, again: str, reason: str
) -> None:
    """Queue a running ask once more, with the reason `again`; one that has been queued again before is failed."""
    found = conn.execute("SELECT reason FROM asks WHERE id = ?", (to_blob(ask),)).fetchone()
    state = "failed" if found is not None and found[0] in (REQUEUED, BROKEN_OFF) else "queued"
    if state == "queued":
        rows.set_ask(conn, ask, state=state, step=None, reason=again)
    else:
        rows.set_ask(conn, ask, state=state, settled_at=utc_now(), reason=reason)
    rows.add_event(conn, events.ASK_CHANGED, scenario, {"ask": ask, "number": number}, state)


def consume(conn: sqlite3.Connection, scenario: str, step: int, inputs: Sequence[str]) -> None:
    """Mark the reports among the ids `inputs` as used up by a step: none is learned from twice."""
    conn.executemany(
        "UPDATE reports SET consumed_by = ? WHERE id = ? AND scenario = ? AND consumed_by IS NULL",
        [(step, to_blob(name), scenario) for name in inputs],
    )


def _asks(conn: sqlite3.Connection, row: Version) -> list[tuple[str, int]]:
    found = conn.execute(
        "SELECT id, number FROM asks WHERE scenario = ? AND step = ? AND state = 'running' ORDER BY number",
        (row.scenario, row.step),
    ).fetchall()
    return [(from_blob(ask), int(number)) for ask, number in found]


def _pending_with(conn: sqlite3.Connection, row: Version) -> list[int]:
    found = conn.execute(
        "SELECT number FROM versions WHERE scenario = ? AND state = 'pending' AND content_id = ?",
        (row.scenario, row.content_id),
    ).fetchall()
    return [int(number) for (number,) in found]


def _one(conn: sqlite3.Connection, where: str, *values: Any) -> Version | None:
    row = conn.execute(f"SELECT {_COLUMNS} FROM versions WHERE {where}", values).fetchone()
    return None if row is None else _version(row)


def _version(row: Sequence[Any]) -> Version:
    scenario, number, release, content, parent, step, operation, state, summary, components, requires, evaluation = row
    return Version(
        scenario,
        number,
        release,
        content,
        parent,
        step,
        operation,
        state,
        summary,
        json.loads(components or "[]"),
        json.loads(requires or "[]"),
        json.loads(evaluation or "{}"),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
