"""Hermes Agent: its database `state.db`. A call is an assistant's message, asked with what stood before it.

What it does not hold: the tools, and what a call used. A message that a compaction took out of the conversation is not
among what a later call was asked with.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reef.transcripts.call import Call, Json, Reading, arguments, chat_reply, of_milliseconds
from reef.transcripts.database import opened

AGENT = "hermes"
LACKS = ("tools",)
TABLES = frozenset({"sessions", "messages", "state_meta"})
"""Those by which its database is told."""
_SESSION = ("id", "model", "system_prompt", "cwd", "title")
_MESSAGE = (
    "id",
    "role",
    "content",
    "api_content",
    "tool_call_id",
    "tool_calls",
    "timestamp",
    "finish_reason",
    "reasoning_content",
    "active",
)


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a database, session by session."""
    with opened(path) as connection:
        for session in _rows(connection, "sessions", _SESSION, "ORDER BY started_at, id"):
            rows = list(_rows(connection, "messages", _MESSAGE, "WHERE session_id = ? ORDER BY id", session["id"]))
            yield from _of_session(session, rows, reading)


def _rows(
    connection: sqlite3.Connection, table: str, wanted: tuple[str, ...], which: str, *values: Any
) -> Iterator[Json]:
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    names = [name for name in wanted if name in there]
    for row in connection.execute(f"SELECT {', '.join(names)} FROM {table} {which}", values):
        yield dict(zip(names, row, strict=True))


def _of_session(session: Json, rows: list[Json], reading: Reading) -> Iterator[Call]:
    for place, row in enumerate(rows):
        if row["role"] != "assistant":
            continue
        before = [one for one in rows[:place] if one.get("active", 1) or not row.get("active", 1)]
        yield _call(session, row, [message for one in before if (message := _message(one, reading))], reading)


def _call(session: Json, row: Json, conversation: list[Json], reading: Reading) -> Call:
    system = session.get("system_prompt")
    lacks = LACKS if system else ("system prompt", *LACKS)
    reading.lacks |= set(lacks)
    answer = _message(row, reading) or {"role": "assistant", "content": None}
    said = answer.get("content") or answer.get("tool_calls") or answer.get("reasoning_content")
    model, id = session.get("model"), f"{session['id']}-{row['id']}"
    asked = [{"role": "system", "content": system}, *conversation] if system else conversation
    return Call(
        agent=AGENT,
        session=str(session["id"]),
        message=str(row["id"]),
        dialect="chat",
        request={"model": model, "messages": asked},
        response=chat_reply(id, model, answer, row.get("finish_reason"), None) if said else None,
        started_at=of_milliseconds(row["timestamp"] * 1000) if isinstance(row["timestamp"], int | float) else None,
        state="complete" if said else "interrupted",
        cwd=session.get("cwd"),
        title=session.get("title"),
        lacks=lacks,
    )


def _message(row: Json, reading: Reading) -> Json | None:
    """A row as chat has it; None for one that the model is never sent."""
    role = row["role"]
    if role in ("user", "system"):
        sent = row.get("api_content")
        return {"role": role, "content": sent if isinstance(sent, str) and sent else row["content"]}
    if role == "tool":
        return {"role": "tool", "tool_call_id": row.get("tool_call_id"), "content": row["content"] or ""}
    if role != "assistant":
        return None
    found: Json = {"role": "assistant", "content": row["content"] or None}
    if row.get("reasoning_content"):
        found["reasoning_content"] = row["reasoning_content"]
    called = [_tool_call(item) for item in _listed(row.get("tool_calls"), reading)]
    return {**found, "tool_calls": called} if called else found


def _listed(text: object, reading: Reading) -> list[Json]:
    if not isinstance(text, str) or not text:
        return []
    try:
        found = json.loads(text)
    except ValueError:
        reading.unreadable += 1
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _tool_call(item: Json) -> Json:
    function = item.get("function") if isinstance(item.get("function"), dict) else item
    assert isinstance(function, dict)
    told = {"name": function.get("name"), "arguments": arguments(function.get("arguments"))}
    return {"id": item.get("id"), "type": "function", "function": told}
