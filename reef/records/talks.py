"""A session as one conversation: what was said in all its calls, each thing once, with what answered and was rated.

An agent repeats the conversation with every call, so the longest call holds nearly all of it; what later calls add
comes behind. Calls that belong to no longer one (a subagent's, or what came before a conversation was cut short) stay
apart and are named. Where a server holds the conversation, every call adds its own part.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from reef import conversation
from reef.errors import Failed
from reef.ids import from_blob
from reef.records import parts, shapes
from reef.records.filters import Filter
from reef.records.lists import clause

Row = dict[str, Any]

READ_AT_MOST = 300
"""So many bodies are read for one conversation, …"""
READ_BYTES = 64 * 1024 * 1024
"""… and so many bytes."""
_CALLS = """SELECT records.sequence, records.id, request_part, request_chain, response_part, response_chain,
 coalesce(request_bytes, 0), answer_preview, follows, state, error, preview FROM records"""


def talk(conn: sqlite3.Connection, session: str, scenario: str | None = None) -> Row:
    """`{"messages", "apart", "cut"}` of a session, given by its key or id.

    A message: `role, text`, and where there are such `reasoning`, `calls` (`[{name, arguments, result}]`), and for
    what a call answered `agent_record_id, score, state` and its `error`. `apart` are the calls whose conversation is
    another, as rows of a list; `cut` says whether a session was too long to be read to its end.
    """
    where, values = Filter(scenario=scenario, session=session).conditions(conn)
    calls = [
        _Call(row)
        for row in conn.execute(f"{_CALLS}{clause([*where, 'side_call = 0'])} ORDER BY records.sequence", values)
    ]
    if not calls:
        return {"messages": [], "apart": [], "cut": False}
    held = any(call.follows for call in calls)
    longest = max(calls, key=lambda call: (call.size, call.sequence))
    begin = 0 if held else calls.index(longest)
    reading = _Reading(conn)
    for call in calls[begin:]:
        reading.add(call)
    found = reading.messages
    _attribute(found, calls[:begin])
    named = {message.get("agent_record_id") for message in found}
    for message in found:
        if "agent_record_id" in message:
            message["score"] = _score(conn, message["agent_record_id"])
    apart = [call.shown(conn) for call in calls[:begin] if call.receipt not in named]
    return {"messages": _folded(found), "apart": apart, "cut": reading.cut}


class _Call:
    """One call of the session."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.sequence: int = row[0]
        self.receipt = from_blob(row[1])
        self.request: parts.Place = (row[2], row[3])
        self.response: parts.Place = (row[4], row[5])
        self.size: int = row[6]
        self.answer: str | None = row[7]
        self.follows: str | None = row[8]
        self.state: str = row[9]
        self.error: str | None = row[10]
        self.preview: str | None = row[11]

    def told(self) -> Row:
        """What its answer says of it."""
        return {"agent_record_id": self.receipt, "state": self.state} | ({"error": self.error} if self.error else {})

    def shown(self, conn: sqlite3.Connection) -> Row:
        """The row of a list for a call that stays apart."""
        score = _score(conn, self.receipt)
        return {
            "agent_record_id": self.receipt,
            "state": self.state,
            "preview": self.preview,
            "answer_preview": self.answer,
            "score": score,
        }


class _Reading:
    """Messages in order, each once."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        self.messages: list[Row] = []
        self.cut = False
        self._seen: Counter[str] = Counter()
        self._bodies = 0
        self._bytes = 0

    def add(self, call: _Call) -> None:
        """Add what a call asked and what was answered, as far as that is new."""
        if self._bodies >= READ_AT_MOST or self._bytes >= READ_BYTES:
            self.cut = True
            return
        repeated: Counter[str] = Counter()
        for message in conversation.asked(conversation.parsed(self._body(call.request))) or ():
            same = _same(message)
            repeated[same] += 1
            # Who says `yes` twice has said it twice.
            if repeated[same] > self._seen[same]:
                self._add(same, message)
        answer = conversation.answered(conversation.parsed(self._body(call.response))) or [{"role": "assistant"}]
        for number, message in enumerate(answer):
            self._add(_same(message), message | (call.told() if number == 0 else {}))

    def _add(self, same: str, message: Row) -> None:
        self._seen[same] += 1
        self.messages.append(message)

    def _body(self, place: parts.Place) -> bytes | None:
        try:
            body = parts.get_body(self.conn, place)
        except Failed:
            return None
        self._bodies += 1
        self._bytes += len(body or b"")
        return body


def _same(message: Row) -> str:
    """What tells messages apart: not the marks for caches that move along, nor how an argument was spaced."""
    calls = [(name, conversation.argument_summary(arguments)) for name, arguments in _calls_of(message)]
    said = [message.get("role"), conversation.content_text(message.get("content")).strip(), message.get("tool_call_id")]
    return json.dumps([*said, calls], default=str)


def _calls_of(message: Row) -> list[tuple[str, str]]:
    found = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            found.append((str(function.get("name") or "tool"), text))
    return found


def _attribute(messages: list[Row], calls: Sequence[_Call]) -> None:
    """Say of each answer which call gave it: both are in order, and a call keeps the first line of what it answered."""
    at = 0
    for message in messages:
        if message.get("role") != "assistant" or "agent_record_id" in message:
            continue
        for number in range(at, len(calls)):
            if _answers(calls[number], message):
                message.update(calls[number].told())
                at = number + 1
                break


def _answers(call: _Call, message: Row) -> bool:
    if not call.answer:
        return False
    text = conversation.content_text(message.get("content")).strip()
    if text:
        return text.startswith(call.answer[:80])
    return any(call.answer.startswith(f"{name}(") for name, _ in _calls_of(message)[:1])


def _folded(messages: Sequence[Row]) -> list[Row]:
    """The messages as they are shown, with the results of tools beside their calls."""
    results = {message.get("tool_call_id"): message for message in messages if message.get("role") == "tool"}
    taken: set[Any] = set()
    shown: list[tuple[Any, Row]] = []
    for message in messages:
        found: Row = {"role": message.get("role"), "text": conversation.content_text(message.get("content"))}
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(reasoning, str) and reasoning.strip():
            found["reasoning"] = reasoning
        calls = message.get("tool_calls")
        ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        for id, (name, arguments) in zip(ids, _calls_of(message), strict=False):
            result = results.get(id) if isinstance(id, str) else None
            taken.update([id] if result else [])
            text = None if result is None else conversation.content_text(result.get("content"))
            found.setdefault("calls", []).append({"name": name, "arguments": arguments, "result": text})
        found |= {name: message[name] for name in ("agent_record_id", "score", "state", "error") if name in message}
        shown.append((message.get("tool_call_id") if message.get("role") == "tool" else None, found))
    return [found for id, found in shown if id is None or id not in taken]


def _score(conn: sqlite3.Connection, receipt: str) -> float | None:
    row = conn.execute(f"SELECT {shapes.SCORE} FROM records WHERE id = ?", (bytes.fromhex(receipt),)).fetchone()
    return None if row is None else row[0]
