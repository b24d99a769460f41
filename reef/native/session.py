"""A session as a file: one JSON line for the head, one for each message, one when system prompt or tools change.

    {"type": "session", "agent": "native", "version": 1, "id", "cwd", "at"}
    {"type": "context", "at", "system", "tools"}
    {"type": "message", "at", "message": {...}, "model"?, "receipt"?, "reply"?, "finish"?, "usage"?, "left_out"?}

A line is written when it is known, so that a session which was killed goes on from what it had.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reef.errors import Failed, NotFound
from reef.ids import new_id, utc_now
from reef.paths import ensure_private

Json = dict[str, Any]
FORMAT = 1
_GONE = "(there is no result: the turn was ended before the tool had one)"


@dataclass
class Session:
    """The messages of one session and the file that they are kept in."""

    id: str
    cwd: str
    file: Path
    messages: list[Json] = field(default_factory=list)
    """Everything but the system prompt."""
    _context: tuple[str, str] = ("", "")
    _begun: bool = False

    @classmethod
    def new(cls, folder: Path, cwd: Path) -> Session:
        """A session that has no file until something is said."""
        at, name = utc_now(), new_id()
        stamp = at[:19].replace(":", "-")
        return cls(name, str(cwd), folder / f"{stamp}_{name}.jsonl")

    def add(self, message: Json, **facts: Any) -> None:
        """Append one message, with what is known of it. Raises Failed when it cannot be kept."""
        self.messages.append(message)
        known = {name: value for name, value in facts.items() if value is not None}
        self._write({"type": "message", "at": utc_now(), "message": message, **known})

    def shown(self, system: str, tools: list[Json]) -> None:
        """Note what the model is given beside the messages, when it is not what it was given before."""
        now = (system, json.dumps(tools))
        if now != self._context:
            self._context = now
            self._write({"type": "context", "at": utc_now(), "system": system, "tools": tools})

    def close_calls(self) -> None:
        """Give every tool call that has no result one: a model is refused a conversation with a hole in it."""
        answered = {message.get("tool_call_id") for message in self.messages if message.get("role") == "tool"}
        for message in list(self.messages):
            for call in message.get("tool_calls") or ():
                if call.get("id") not in answered:
                    self.add({"role": "tool", "tool_call_id": call.get("id"), "content": _GONE})

    def _write(self, line: Json) -> None:
        try:
            if not self._begun:
                self._begun = True
                ensure_private(self.file.parent)
                if not self.file.exists():
                    head = {"type": "session", "agent": "native", "version": FORMAT, "id": self.id, "cwd": self.cwd}
                    self._write({**head, "at": utc_now()})
            handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise Failed(f"the session cannot be kept in {self.file}: {error.strerror}", "reef disk") from None


def last_here(folder: Path, cwd: Path) -> Session:
    """The newest session of this directory. Raises NotFound."""
    for file in sorted(folder.glob("*.jsonl"), reverse=True):
        head = _head(file)
        if head is not None and head["cwd"] == str(cwd):
            return _read(file, head)
    raise NotFound(f"there is no session of {cwd} to go on with", "reef-native")


def by_id(folder: Path, wanted: str) -> Session:
    """The session whose id is, or begins with, `wanted`. Raises NotFound."""
    heads = [(file, head) for file in sorted(folder.glob("*.jsonl")) if (head := _head(file)) is not None]
    found = [pair for pair in heads if pair[1]["id"].startswith(wanted)] if wanted else []
    if len(found) == 1:
        return _read(*found[0])
    why = "is no session" if not found else f"begins the ids of {len(found)} sessions"
    newest = ", ".join(head["id"][:12] for _, head in heads[-3:]) or "none"
    raise NotFound(f"{wanted[:64]!r} {why} here (newest: {newest})", "reef-native --continue")


def _head(file: Path) -> Json | None:
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            found = json.loads(lines.readline(65536))
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and found.get("type") == "session"
    return found if whole and isinstance(found.get("id"), str) and isinstance(found.get("cwd"), str) else None


def _read(file: Path, head: Json) -> Session:
    session = Session(head["id"], head["cwd"], file, _begun=True)
    raw = file.read_bytes()
    for line in raw.split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            # A line that was cut when the process was killed holds nothing that was answered to.
            continue
        if not isinstance(entry, dict):
            continue
        if entry.get("type") == "message" and isinstance(entry.get("message"), dict):
            session.messages.append(entry["message"])
        elif entry.get("type") == "context":
            session._context = (str(entry.get("system")), json.dumps(entry.get("tools")))
    if raw and not raw.endswith(b"\n"):
        with file.open("ab") as opened:
            opened.write(b"\n")
    session.close_calls()
    return session
