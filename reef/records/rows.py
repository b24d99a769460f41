"""Operations for scenarios, sessions, asks, steps, versions, episodes and events.

Each takes the writer's connection first and runs inside its transaction. The caller appends the event that tells what
it did, with `add_event`, in the same operation. Columns called `*_json` are given as plain values without that ending
(`update_step(…, evaluation={…})`) or, under their full name, as JSON text; the recipe's own state (`steps.state_json`)
is called `recipe_state`. No credential passes: whatever writes a row here needs no filter of its own.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from reef import events
from reef.errors import Conflict, NotFound
from reef.ids import new_id, to_blob, utc_now
from reef.records.proposals import free_proposals as free_proposals
from reef.records.redact import kept, kept_json, kept_json_text

FINAL_STEP_STATES = frozenset(
    {"published", "pending", "rejected", "skipped", "failed", "could_not_evaluate", "cancelled"}
)
FINAL_ASK_STATES = frozenset({"published", "pending", "rejected", "skipped", "failed", "cancelled"})

_SCENARIO_COLUMNS = ("created_at", "recipe", "adapter", "engine", "state", "config_json")
_SESSION_COLUMNS = (
    "kind", "adapter", "version", "step", "key", "cwd", "title", "token_hash", "pid", "pid_started", "opened_at",
    "closed_at",
)  # fmt: skip
_ASK_COLUMNS = (
    "text", "source", "session", "release_id", "requires_json", "client_json", "content_hash", "state", "step",
    "created_at", "settled_at", "reason",
)  # fmt: skip
_STEP_COLUMNS = (
    "recipe", "proposer", "policy", "state", "started_at", "ended_at", "asks_json", "consumed_json", "summary",
    "reason", "evaluation_json", "mutations_json", "candidate", "version", "metrics_json", "notes_json", "state_json",
    "pid",
)  # fmt: skip
_VERSION_COLUMNS = (
    "release_id", "content_id", "parent", "step", "operation", "state", "summary", "components_json", "requires_json",
    "evaluation_json", "created_at",
)  # fmt: skip
_EPISODE_COLUMNS = ("side", "purpose", "task", "state", "exit_code", "duration_ms", "detail_json")


def add_event(
    conn: sqlite3.Connection, kind: str, scenario: str | None, ids: dict[str, Any], state: str | None = None
) -> int:
    """Append an event (see `reef.events`) and return its sequence. `ids` holds ids and numbers, never text."""
    cursor = conn.execute(
        "INSERT INTO events (at, kind, scenario, ids_json, state) VALUES (?, ?, ?, ?, ?)",
        (utc_now(), kind, scenario, orjson.dumps(ids).decode(), state),
    )
    return int(cursor.lastrowid or 0)


def add_scenario(conn: sqlite3.Connection, name: str, **fields: Any) -> bool:
    """Add a scenario (`recipe`, `adapter`, `engine`, `config`, `state` = creating); False when the name is taken.

    Names that differ only by case are the same name.
    """
    known = conn.execute("SELECT 1 FROM scenarios WHERE name = ?", (name,)).fetchone()
    if known is None:
        defaults = {"state": "creating", "created_at": utc_now(), "config": {}}
        _insert(conn, "scenarios", _SCENARIO_COLUMNS, {"name": name}, defaults | fields)
    return known is None


def set_scenario(conn: sqlite3.Connection, name: str, **fields: Any) -> None:
    """Change columns of a scenario. Raises NotFound."""
    if not _update(conn, "scenarios", _SCENARIO_COLUMNS, {"name": name}, fields):
        raise NotFound(f"there is no scenario {name!r}", "reef scenarios list")


def move_scenario(conn: sqlite3.Connection, name: str, state: str) -> None:
    """Make a ready scenario `archived`, or an archived one `ready`, and say so. Raises Conflict while a step runs."""
    row = conn.execute("SELECT number FROM steps WHERE scenario = ? AND state = 'running' LIMIT 1", (name,)).fetchone()
    if row is not None and state == "archived":
        raise Conflict(f"step {row[0]} of scenario {name!r} runs", f"reef steps cancel {row[0]} --scenario {name}")
    set_scenario(conn, name, state=state)
    kind = events.SCENARIO_ARCHIVED if state == "archived" else events.SCENARIO_RESTORED
    add_event(conn, kind, name, {}, state)


def remove_scenario(conn: sqlite3.Connection, name: str) -> None:
    """Remove a scenario that was never finished (state `creating`); a ready one stays."""
    conn.execute("DELETE FROM scenarios WHERE name = ? AND state = 'creating'", (name,))


def open_session(conn: sqlite3.Connection, scenario: str, id: str | None = None, **fields: Any) -> str:
    """Open a session and return its id, which is its key too when none is given.

    Fields: `kind` (`agent`, the default, or `step`), `adapter`, `version`, `step`, `key`, `cwd`, `title`,
    `token_hash` (bytes), `pid`, `pid_started`.
    """
    session = id or new_id()
    defaults = {"kind": "agent", "opened_at": utc_now()}
    values = defaults | fields
    values["key"] = values.get("key") or session
    _insert(conn, "sessions", _SESSION_COLUMNS, {"id": to_blob(session), "scenario": scenario}, values)
    return session


def close_session(conn: sqlite3.Connection, id: str) -> bool:
    """Close a session and kill its token; False when it was closed before or is unknown."""
    cursor = conn.execute(
        "UPDATE sessions SET closed_at = ?, token_hash = NULL WHERE id = ? AND closed_at IS NULL",
        (utc_now(), to_blob(id)),
    )
    return cursor.rowcount > 0


def session_by_token_hash(conn: sqlite3.Connection, token_hash: bytes) -> dict[str, Any] | None:
    """The open session that a token opens: `id, scenario, kind, adapter, version, step, key, cwd, pid, opened_at`."""
    row = conn.execute(
        "SELECT lower(hex(id)), scenario, kind, adapter, version, step, key, cwd, pid, opened_at FROM sessions"
        " WHERE token_hash = ? AND closed_at IS NULL",
        (token_hash,),
    ).fetchone()
    names = ("id", "scenario", "kind", "adapter", "version", "step", "key", "cwd", "pid", "opened_at")
    return None if row is None else dict(zip(names, row, strict=True))


def add_ask(
    conn: sqlite3.Connection, scenario: str, text: str, id: str | None = None, **fields: Any
) -> tuple[str, int, bool]:
    """Queue an ask and return `(id, number within the scenario, whether it is new)`.

    Fields: `source` (default `person`), `session`, `release_id`, `requires`, `client`, `content_hash` (bytes).
    The same id with the same `content_hash` gives the stored ask back; other content raises Conflict.
    """
    ask = id or new_id()
    known = conn.execute(
        "SELECT scenario, number, content_hash, text FROM asks WHERE id = ?", (to_blob(ask),)
    ).fetchone()
    if known is not None:
        if (known[0], known[2], known[3]) != (scenario, fields.get("content_hash"), kept(text)):
            raise Conflict(f"the id {ask} is taken by another ask", "reef asks list")
        return ask, int(known[1]), False
    number = _next_number(conn, "asks", scenario)
    defaults = {"source": "person", "state": "queued", "created_at": utc_now(), "text": text}
    key = {"id": to_blob(ask), "scenario": scenario, "number": number}
    _insert(conn, "asks", _ASK_COLUMNS, key, defaults | fields)
    return ask, number, True


def set_ask(conn: sqlite3.Connection, id: str, **fields: Any) -> None:
    """Change columns of an ask; a final state sets `settled_at`. Raises NotFound."""
    if fields.get("state") in FINAL_ASK_STATES:
        fields.setdefault("settled_at", utc_now())
    if not _update(conn, "asks", _ASK_COLUMNS, {"id": to_blob(id)}, fields):
        raise NotFound(f"there is no ask {id}", "reef asks list")


def add_step(conn: sqlite3.Connection, scenario: str, **fields: Any) -> int:
    """Start a step (`recipe` and other columns of `steps`; state `running`) and return its number in the scenario."""
    number = _next_number(conn, "steps", scenario)
    key = {"id": to_blob(fields.pop("id", None) or new_id()), "scenario": scenario, "number": number}
    _insert(conn, "steps", _STEP_COLUMNS, key, {"state": "running", "started_at": utc_now()} | fields)
    return number


def update_step(conn: sqlite3.Connection, scenario: str, number: int, **fields: Any) -> None:
    """Change columns of a step; a final state sets `ended_at`. Raises NotFound."""
    if fields.get("state") in FINAL_STEP_STATES:
        fields.setdefault("ended_at", utc_now())
    if not _update(conn, "steps", _STEP_COLUMNS, {"scenario": scenario, "number": number}, fields):
        raise NotFound(f"scenario {scenario!r} has no step {number}", "reef steps list")


def add_activity(
    conn: sqlite3.Connection, scenario: str, step: int, kind: str, text: str, failed: bool = False, at: str = ""
) -> None:
    """Append one line of what step number `step` is doing."""
    conn.execute(
        "INSERT INTO activities (scenario, step, at, kind, text, failed) VALUES (?, ?, ?, ?, ?, ?)",
        (scenario, step, at or utc_now(), kept(kind), kept(text), failed),
    )


def add_episode(conn: sqlite3.Connection, scenario: str, step: int, **fields: Any) -> None:
    """Append one run of an agent in step number `step`.

    Fields: `side` (`current` or `candidate`), `purpose`, `task`, `state`, `exit_code`, `duration_ms`, `detail`.
    """
    _insert(conn, "episodes", _EPISODE_COLUMNS, {"scenario": scenario, "step": step}, fields)


def add_version(conn: sqlite3.Connection, scenario: str, number: int | None = None, **fields: Any) -> int:
    """Add a version (columns of `versions`; state `publishing`) and return its number, the next one by default."""
    chosen = number or _next_number(conn, "versions", scenario)
    defaults = {"state": "publishing", "created_at": utc_now()}
    _insert(conn, "versions", _VERSION_COLUMNS, {"scenario": scenario, "number": chosen}, defaults | fields)
    return chosen


def set_version(conn: sqlite3.Connection, scenario: str, number: int, **fields: Any) -> None:
    """Change columns of a version. Raises NotFound."""
    if not _update(conn, "versions", _VERSION_COLUMNS, {"scenario": scenario, "number": number}, fields):
        raise NotFound(f"scenario {scenario!r} has no version v{number}", "reef versions list")


def _next_number(conn: sqlite3.Connection, table: str, scenario: str) -> int:
    row = conn.execute(f"SELECT coalesce(max(number), 0) + 1 FROM {table} WHERE scenario = ?", (scenario,)).fetchone()
    return int(row[0])


def _columns(table: str, allowed: tuple[str, ...], fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` under their column names, JSON columns as text. A name that is no column is a programmer's error."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        column = "state_json" if name == "recipe_state" else name
        if column not in allowed and f"{column}_json" in allowed:
            column = f"{column}_json"
        if column not in allowed:
            raise TypeError(f"{table} has no column for {name!r}")
        if not column.endswith("_json"):
            found[column] = kept(value)
        elif isinstance(value, str) and column == name:
            found[column] = kept_json_text(value)
        else:
            found[column] = kept_json(value)
    return found


def _insert(
    conn: sqlite3.Connection, table: str, allowed: tuple[str, ...], key: dict[str, Any], fields: dict[str, Any]
) -> None:
    row = key | _columns(table, allowed, fields)
    marks = ", ".join("?" * len(row))
    conn.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def _update(
    conn: sqlite3.Connection, table: str, allowed: tuple[str, ...], key: dict[str, Any], fields: dict[str, Any]
) -> bool:
    """Whether there is such a row; an empty `fields` only asks."""
    where = " AND ".join(f"{column} = ?" for column in key)
    row = _columns(table, allowed, fields)
    if not row:
        return conn.execute(f"SELECT 1 FROM {table} WHERE {where}", tuple(key.values())).fetchone() is not None
    changes = ", ".join(f"{column} = ?" for column in row)
    cursor = conn.execute(f"UPDATE {table} SET {changes} WHERE {where}", (*row.values(), *key.values()))
    return cursor.rowcount > 0
