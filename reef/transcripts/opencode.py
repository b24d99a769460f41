"""OpenCode: its database `opencode.db`, or what `opencode export SESSION` prints. A call is an assistant's message.

What it does not hold: the system prompt and the tools. Written as chat, whichever API answered.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from reef.errors import InvalidInput
from reef.transcripts.call import (
    FINISH,
    Call,
    Json,
    Reading,
    arguments,
    chat_reply,
    chat_usage,
    number,
    of_milliseconds,
    parsed,
)
from reef.transcripts.database import is_database, opened

AGENT = "opencode"
LACKS = ("system prompt", "tools")
TABLES = frozenset({"session", "message", "part"})
"""Those by which its database is told."""


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a database or of an exported session, session by session."""
    if is_database(path):
        yield from _of_database(path, reading)
        return
    found = parsed(path.read_bytes())
    if found is None:
        raise InvalidInput(f"{path.name} is not JSON", "opencode export SESSION > session.json")
    messages = [(one.get("info") or {}, one.get("parts") or []) for one in found.get("messages") or []]
    yield from _of_session(found.get("info") or {}, messages, reading)


def _of_database(path: Path, reading: Reading) -> Iterator[Call]:
    with opened(path) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
        wanted = [name for name in ("id", "directory", "title", "parent_id") if name in columns]
        sessions = connection.execute(f"SELECT {', '.join(wanted)} FROM session ORDER BY id").fetchall()
        for row in sessions:
            info = dict(zip(wanted, row, strict=True))
            yield from _of_session(info, _messages(connection, info["id"], reading), reading)


def _messages(connection: sqlite3.Connection, session: str, reading: Reading) -> list[tuple[Json, list[Json]]]:
    parts: dict[str, list[Json]] = {}
    for message, data in connection.execute(
        "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", (session,)
    ):
        if (part := parsed(data if isinstance(data, bytes) else str(data).encode())) is None:
            reading.unreadable += 1
        else:
            parts.setdefault(message, []).append(part)
    found = []
    for id, data in connection.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", (session,)):
        info = parsed(data if isinstance(data, bytes) else str(data).encode())
        if info is None:
            reading.unreadable += 1
        else:
            found.append((info | {"id": id}, parts.get(id, [])))
    return found


def _of_session(info: Json, messages: list[tuple[Json, list[Json]]], reading: Reading) -> Iterator[Call]:
    conversation: list[Json] = []
    for message, parts in messages:
        if message.get("role") == "user":
            conversation += _user(parts)
            continue
        if message.get("role") != "assistant":
            continue
        if message.get("summary") is True:
            # A compaction: what comes behind it is asked without what stands before.
            yield _call(info, message, parts, conversation, reading)
            conversation = [{"role": "user", "content": _text(parts)}]
            continue
        yield _call(info, message, parts, conversation, reading)
        conversation += [_answer(parts), *_results(parts)]


def _call(info: Json, message: Json, parts: list[Json], conversation: list[Json], reading: Reading) -> Call:
    reading.lacks |= set(LACKS)
    tokens, time, error = message.get("tokens") or {}, message.get("time") or {}, message.get("error")
    cache = tokens.get("cache") or {}
    cached = number(cache.get("read"))
    prompt = number(tokens.get("input")) + cached + number(cache.get("write"))
    model, answer = message.get("modelID"), _answer(parts)
    said = answer.get("content") or answer.get("tool_calls") or answer.get("reasoning_content")
    finish = "tool_calls" if answer.get("tool_calls") else FINISH.get(str(message.get("finish") or "stop"))
    usage = chat_usage(prompt, number(tokens.get("output")) + number(tokens.get("reasoning")), cached)
    begun, ended = time.get("created"), time.get("completed")
    details = error.get("data") if isinstance(error, dict) else None
    return Call(
        agent=AGENT,
        session=str(info.get("id") or message.get("sessionID")),
        message=str(message.get("id")),
        dialect="chat",
        request={"model": model, "messages": list(conversation)},
        response=chat_reply(str(message.get("id")), model, answer, finish, usage) if said else None,
        started_at=of_milliseconds(begun),
        state="failed" if error else "complete" if said else "interrupted",
        error=str((details or {}).get("message") or error.get("name")) if isinstance(error, dict) else None,
        duration_ms=float(number(ended) - number(begun)) if ended and begun else None,
        cwd=(message.get("path") or {}).get("cwd") or info.get("directory"),
        title=info.get("title"),
        side_call=message.get("summary") is True,
        lacks=LACKS,
    )


def _user(parts: list[Json]) -> list[Json]:
    found: list[Json] = []
    for part in parts:
        if part.get("type") == "text" and not part.get("ignored"):
            found.append({"type": "text", "text": part.get("text")})
        elif part.get("type") == "file" and str(part.get("mime")).startswith("image/"):
            found.append({"type": "image_url", "image_url": {"url": part.get("url")}})
    if not found:
        return []
    plain = all(part["type"] == "text" for part in found)
    return [{"role": "user", "content": "\n\n".join(str(part["text"]) for part in found) if plain else found}]


def _text(parts: list[Json]) -> str:
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def _answer(parts: list[Json]) -> Json:
    answer: Json = {"role": "assistant", "content": _text(parts) or None}
    thoughts = [str(part["text"]) for part in parts if part.get("type") == "reasoning" and part.get("text")]
    if thoughts:
        answer["reasoning_content"] = "\n\n".join(thoughts)
    calls = [
        {
            "id": part.get("callID"),
            "type": "function",
            "function": {"name": part.get("tool"), "arguments": arguments((part.get("state") or {}).get("input"))},
        }
        for part in parts
        if part.get("type") == "tool"
    ]
    return {**answer, "tool_calls": calls} if calls else answer


def _results(parts: list[Json]) -> list[Json]:
    found = []
    for part in parts:
        if part.get("type") == "tool":
            state = part.get("state") or {}
            output = state.get("output") if state.get("status") == "completed" else state.get("error")
            text = output if isinstance(output, str) else json.dumps(output) if output is not None else ""
            found.append({"role": "tool", "tool_call_id": part.get("callID"), "content": text})
    return found
