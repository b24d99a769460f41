"""One model call as a transcript has it, and its envelope for `POST /reef/records`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FORMAT = "reef-record/1"
FINISH = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "tool-calls": "tool_calls"}
"""What agents call the end of a reply, in the words of chat completions."""


@dataclass
class Call:
    """One model call. `request` and `response` are bodies of `dialect`, made from what the transcript holds."""

    agent: str
    session: str
    message: str
    """The agent's own id of the reply; with the session's it names the call for good."""
    dialect: str
    request: Json
    response: Json | None
    started_at: str | None = None
    state: str = "complete"
    error: str | None = None
    duration_ms: float | None = None
    cwd: str | None = None
    title: str | None = None
    side_call: bool = False
    lacks: tuple[str, ...] = ()
    """What the agent sent and its transcript does not hold."""

    @property
    def id(self) -> str:
        """The same for the same call, however often its transcript is read."""
        name = "\0".join((self.agent, self.session, self.message))
        return hashlib.blake2b(
            name.encode("utf-8", "surrogatepass"), digest_size=16, person=b"reef transcript"
        ).hexdigest()

    def envelope(self, scenario: str | None = None) -> bytes:
        """The call as a line that `POST /reef/records` takes."""
        facts: Json = {
            "format": FORMAT,
            "origin": f"transcript:{self.agent}",
            "session": self.session,
            "dialect": self.dialect,
            "state": self.state,
            "source": "agent",
            "adapter": self.agent,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "cwd": self.cwd,
            "title": self.title,
            "side_call": self.side_call,
            # What was sent is not all there, so nothing is to be learned from these bytes as they stand.
            "trainable": False,
            "notes": {"transcript": {"lacks": list(self.lacks)}},
        }
        facts = {name: value for name, value in facts.items() if value is not None}
        if self.error is not None:
            facts["error"] = self.error
        if scenario is not None:
            facts["scenario"] = scenario
        payload = {**self.request, "reef": facts}
        if self.response is not None:
            payload["response"] = self.response
        return dump({"agent_record_id": self.id, "request_type": "inference", "payload": payload})


@dataclass
class Reading:
    """What reading a file came upon, besides its calls."""

    unreadable: int = 0
    """Lines that are no JSON object: the last one of a session that is being written, or damage."""
    lacks: set[str] = field(default_factory=set)


def lines(path: Path, reading: Reading) -> Iterator[Json]:
    """The JSON objects of a file, one a line; what is none is counted and passed over, as the agents do."""
    with path.open("rb") as source:
        for line in source:
            if not line.strip():
                continue
            found = parsed(line)
            if found is None:
                reading.unreadable += 1
            else:
                yield found


def parsed(line: bytes) -> Json | None:
    """The object that a line is; None when it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def dump(value: Any) -> bytes:
    """`value` as one line of JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair can only be written escaped.
        return json.dumps(value, separators=(",", ":")).encode()


def arguments(value: Any) -> str:
    """The arguments of a tool call as the text that chat and responses carry."""
    return value if isinstance(value, str) else dump({} if value is None else value).decode()


def of_milliseconds(value: Any) -> str | None:
    """A time in milliseconds since 1970, as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def text_of(content: Any) -> str:
    """The text of a content that is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def chat_reply(id: str, model: str | None, message: Json, finish: str | None, usage: Json | None) -> Json:
    """A chat completion."""
    reply: Json = {"id": id, "object": "chat.completion", "model": model}
    reply["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return reply if usage is None else {**reply, "usage": usage}


def chat_usage(prompt: int, completion: int, cached: int) -> Json:
    """The usage of a chat completion; `prompt` holds the cached ones."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def number(value: Any) -> int:
    """A whole number of a usage; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
