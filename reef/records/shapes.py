"""The JSON shapes of rows, as HTTP, `--json` and the TUI show them, each beside the SELECT that it is made from."""

from __future__ import annotations

import json
from typing import Any

from reef.ids import from_blob

Row = dict[str, Any]

_LATEST = """(SELECT reports.score FROM report_references JOIN reports ON reports.sequence = report_references.report
 WHERE report_references.record = records.sequence AND reports.source = '{source}' AND reports.withdrawn_at IS NULL
 AND reports.score IS NOT NULL AND {several} (SELECT 1 FROM report_references AS other
 WHERE other.report = reports.sequence AND other.record != records.sequence)
 ORDER BY coalesce(reports.revised_at, reports.created_at) DESC, reports.sequence DESC LIMIT 1)"""
_SCORES = tuple(
    _LATEST.format(source=source, several=several)
    for source, several in (
        ("person", "NOT EXISTS"), ("agent", "NOT EXISTS"), ("program", "NOT EXISTS"), ("person", "EXISTS"),
    )
)  # fmt: skip
SCORE = _SCORES[0]
"""The person's latest score on a record alone."""
_RECORD_NAMES = (
    "scenario", "session", "dialect", "route", "model", "streaming", "state", "source", "adapter", "version", "engine",
    "load_id", "status", "error", "started_at", "first_byte_ms", "duration_ms", "prompt_tokens", "completion_tokens",
    "cached_tokens", "expected_tokens", "prompt_cut", "finish_reason", "request_bytes", "response_bytes", "preview",
    "answer_preview", "side_call", "redactions", "trainable", "follows", "origin", "pruned_at",
)  # fmt: skip
SELECT_RECORDS = (
    f"SELECT records.sequence, records.id, {', '.join('records.' + name for name in _RECORD_NAMES)},"
    f" {', '.join(_SCORES)} FROM records"
)


def record(row: tuple[Any, ...]) -> Row:
    """A record. `score` is the person's latest on it alone, `agent_score` and `program_score` theirs.

    `session_score` is the person's latest on several records together, this one among them. Each may be None.
    """
    shape: Row = {"sequence": row[0], "agent_record_id": from_blob(row[1])}
    shape |= zip(_RECORD_NAMES, row[2:-4], strict=True)
    for name in ("streaming", "side_call", "trainable", "prompt_cut"):
        shape[name] = bool(shape[name])
    shape["score"], shape["agent_score"], shape["program_score"], shape["session_score"] = row[-4:]
    return shape


SELECT_RECORD_DETAILS = (
    "SELECT attempts_json, notes_json, tags_json, request_hash, coalesce(raw_part, raw_chain) FROM records"
)


def record_details(row: tuple[Any, ...]) -> Row:
    """What only one record's own page shows."""
    attempts, notes, tags = (json.loads(text) if text else None for text in row[:3])
    return {
        "attempts": attempts or [],
        "notes": notes or {},
        "tags": tags or {},
        "request_hash": row[3].hex() if row[3] else None,
        "has_raw": row[4] is not None,
    }


SELECT_SCENARIOS = """SELECT name, recipe, adapter, created_at, engine, state, config_json,
 (SELECT number FROM versions WHERE versions.scenario = scenarios.name AND state = 'published'
 ORDER BY number DESC LIMIT 1),
 (SELECT release_id FROM versions WHERE versions.scenario = scenarios.name AND state = 'published'
 ORDER BY number DESC LIMIT 1) FROM scenarios"""


def scenario(row: tuple[Any, ...]) -> Row:
    """A scenario with its head."""
    return {
        "name": row[0],
        "recipe": row[1],
        "adapter": row[2],
        "version": row[7],
        "release_id": row[8],
        "created_at": row[3],
        "engine": row[4],
        "state": row[5],
        "config": json.loads(row[6]),
    }


SELECT_SESSIONS = """SELECT sessions.id, sessions.key, sessions.scenario, sessions.adapter, sessions.version,
 sessions.cwd, sessions.title, sessions.opened_at, sessions.closed_at, sessions.kind, sessions.pid FROM sessions"""


def session(row: tuple[Any, ...]) -> Row:
    """A session; `calls`, `last_*` and `score` are added by the reader."""
    names = ("key", "scenario", "adapter", "version", "cwd", "title", "opened_at", "closed_at", "kind", "pid")
    return {"id": from_blob(row[0])} | dict(zip(names, row[1:], strict=True))


SELECT_ASKS = """SELECT asks.id, asks.number, asks.scenario, asks.text, asks.state, asks.step, steps.version,
 asks.created_at, asks.settled_at, asks.reason, asks.session, asks.source, asks.release_id, asks.requires_json,
 asks.sequence FROM asks LEFT JOIN steps ON steps.scenario = asks.scenario AND steps.number = asks.step"""


def ask(row: tuple[Any, ...]) -> Row:
    """An ask; `version` is the version that its step made."""
    names = (
        "number", "scenario", "text", "state", "step", "version", "created_at", "settled_at", "reason", "session",
        "source", "release_id", "requires", "sequence",
    )  # fmt: skip
    shape: Row = {"id": from_blob(row[0])} | dict(zip(names, row[1:], strict=True))
    shape["requires"] = json.loads(shape["requires"]) if shape["requires"] else []
    return shape


SELECT_STEPS = """SELECT scenario, number, recipe, proposer, policy, state, started_at, ended_at, asks_json, summary,
 reason, evaluation_json, mutations_json, candidate, version, metrics_json, notes_json, consumed_json FROM steps"""


def step(row: tuple[Any, ...]) -> Row:
    """A step without its `episodes` and `activity`, which the reader adds where one step is asked for."""

    def parsed(text: str | None, empty: Any) -> Any:
        return json.loads(text) if text else empty

    return {
        "scenario": row[0],
        "number": row[1],
        "recipe": row[2],
        "proposer": row[3],
        "policy": row[4],
        "state": row[5],
        "started_at": row[6],
        "ended_at": row[7],
        "asks": parsed(row[8], []),
        "summary": row[9],
        "reason": row[10],
        "evaluation": parsed(row[11], {}),
        "mutations": parsed(row[12], []),
        "candidate": row[13],
        "version": row[14],
        "metrics": parsed(row[15], {}),
        "notes": parsed(row[16], {}),
        "consumed": parsed(row[17], []),
        "episodes": [],
        "activity": [],
    }


SELECT_EPISODES = "SELECT side, purpose, task, state, exit_code, duration_ms, detail_json FROM episodes"


def episode(row: tuple[Any, ...]) -> Row:
    """One run of an agent within a step."""
    names = ("side", "purpose", "task", "state", "exit_code", "duration_ms")
    return dict(zip(names, row[:6], strict=True)) | {"detail": json.loads(row[6]) if row[6] else None}


SELECT_ACTIVITIES = "SELECT at, kind, text, failed FROM activities"


def activity(row: tuple[Any, ...]) -> Row:
    """One line of what a step did."""
    return {"at": row[0], "kind": row[1], "text": row[2], "failed": bool(row[3])}


SELECT_VERSIONS = """SELECT scenario, number, release_id, content_id, parent, step, operation, state, summary,
 created_at, evaluation_json, requires_json, components_json, number = (SELECT max(number) FROM versions AS other
 WHERE other.scenario = versions.scenario AND other.state = 'published') FROM versions"""


def version(row: tuple[Any, ...]) -> Row:
    """A version; `current` when it is the head."""
    return {
        "scenario": row[0],
        "version": row[1],
        "release_id": row[2],
        "content_id": row[3],
        "parent_release_id": row[4],
        "step": row[5],
        "operation": row[6],
        "state": row[7],
        "current": bool(row[13]),
        "pending": row[7] == "pending",
        "summary": row[8],
        "created_at": row[9],
        "evaluation": json.loads(row[10]) if row[10] else {},
        "requires": json.loads(row[11]) if row[11] else [],
        "components": json.loads(row[12]) if row[12] else [],
    }


SELECT_EVENTS = "SELECT sequence, at, kind, scenario, ids_json, state FROM events"


def event(row: tuple[Any, ...]) -> Row:
    """An event, as `/reef/events` sends it."""
    names = ("sequence", "at", "kind", "scenario", "ids", "state")
    return dict(zip(names, (*row[:4], json.loads(row[4]), row[5]), strict=True))
