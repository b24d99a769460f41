"""Claude Code: `projects/-folder-/SESSION.jsonl`. A reply is a line for each of its blocks, all with one message id.

The lines are a tree by `parentUuid`. What the transcript does not hold: the system prompt, the tools, and the reminders
that Claude Code puts into its requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reef.transcripts.call import Call, Json, Reading, lines

AGENT = "claude"
LACKS = ("system prompt", "tools", "reminders")
_SYNTHETIC = "<synthetic>"


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a session file, in the order of the file."""
    found = _Session()
    for line in lines(path, reading):
        found.take(line)
    for replied in found.replies.values():
        reading.lacks |= set(LACKS)
        yield found.call(replied)


class _Session:
    """The lines of one file."""

    def __init__(self) -> None:
        self.lines: dict[str, Json] = {}
        self.replies: dict[str, list[Json]] = {}
        """The lines of each reply, by its message id, in the order of the file."""
        self.results: dict[str, Json] = {}
        """The line with the result of a tool call, by the call's id."""
        self.title: str | None = None

    def take(self, line: Json) -> None:
        if line.get("type") == "summary":
            self.title = line.get("summary") or self.title
        message, uuid = line.get("message"), line.get("uuid")
        if not isinstance(message, dict) or not isinstance(uuid, str):
            if isinstance(uuid, str):
                self.lines[uuid] = line
            return
        self.lines[uuid] = line
        if line.get("type") == "assistant":
            if message.get("model") != _SYNTHETIC and not line.get("isApiErrorMessage"):
                self.replies.setdefault(str(message.get("id") or uuid), []).append(line)
        elif line.get("type") == "user":
            for block in _blocks(message.get("content")):
                if block.get("type") == "tool_result":
                    self.results.setdefault(str(block.get("tool_use_id")), line)

    def call(self, replied: list[Json]) -> Call:
        first, last = replied[0], replied[-1]["message"]
        message = {**last, "content": [block for line in replied for block in _blocks(line["message"].get("content"))]}
        return Call(
            agent=AGENT,
            session=str(first.get("sessionId")),
            message=str(last.get("id") or first["uuid"]),
            dialect="messages",
            request={"model": last.get("model"), "messages": self._conversation(first)},
            response=message,
            started_at=first.get("timestamp"),
            cwd=first.get("cwd"),
            title=self.title,
            side_call=bool(first.get("isSidechain")),
            lacks=LACKS,
        )

    def _conversation(self, line: Json) -> list[Json]:
        """The messages before a line, from the root on."""
        way: list[Json] = []
        seen: set[str] = set()
        parent = line.get("parentUuid")
        while isinstance(parent, str) and parent in self.lines and parent not in seen:
            seen.add(parent)
            way.append(self.lines[parent])
            parent = self.lines[parent].get("parentUuid")
        found: list[Json] = []
        told: set[str] = set()
        for one in reversed(way):
            self._add(found, one, told)
        return found

    def _add(self, found: list[Json], line: Json, told: set[str]) -> None:
        """Add a line's message; the lines of one reply, and neighbours of one role, are one message."""
        kind, message = line.get("type"), line.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            return
        id = str(message.get("id") or line.get("uuid")) if kind == "assistant" else str(line.get("uuid"))
        if id in told or (kind == "assistant" and id not in self.replies):
            return
        told.add(id)
        if kind == "user":
            _join(found, "user", message.get("content"))
            return
        # The way through the tree meets one line of a reply; its tool calls are answered on branches of their own.
        blocks = [block for one in self.replies[id] for block in _blocks(one["message"].get("content"))]
        found.append({"role": "assistant", "content": blocks})
        for block in blocks:
            result = self.results.get(str(block.get("id"))) if block.get("type") == "tool_use" else None
            if result is not None and result["uuid"] not in told:
                told.add(result["uuid"])
                _join(found, "user", result["message"].get("content"))


def _join(found: list[Json], role: str, content: Any) -> None:
    if not found or found[-1]["role"] != role:
        found.append({"role": role, "content": content})
        return
    found[-1] = {"role": role, "content": [*_blocks(found[-1]["content"]), *_blocks(content)]}


def _blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
