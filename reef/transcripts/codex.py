"""Codex: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, the items of the conversation in their order.

A call is what the model said between two inputs. What the transcript does not hold: the tools, and for older sessions
the instructions. Items that a compaction dropped are dropped here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reef.transcripts.call import Call, Json, Reading, lines, number

AGENT = "codex"
_SAID = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_USAGES = (("last_token_usage", "event_msg"), ("usage", "token_usage_record"))


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a session file, in the order of the file."""
    session = _Session(reading)
    for line in lines(path, reading):
        if (found := session.take(line)) is not None:
            yield found
    if (found := session.end()) is not None:
        yield found


class _Session:
    """The conversation of one file, as far as it has been read."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._id: str | None = None
        self._cwd: str | None = None
        self._model: str | None = None
        self._instructions: str | None = None
        self._items: list[Json] = []
        self._said: list[Json] = []
        self._at: str | None = None
        self._usage: Json | None = None
        self._response: str | None = None
        self._count = 0

    def take(self, line: Json) -> Call | None:
        """Take the next line. Returns the call that ended before it, if one did."""
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(payload, dict):
            return None
        if kind == "session_meta" and self._id is None:
            self._begin(payload)
        elif kind == "turn_context":
            self._model = payload.get("model") or self._model
            self._cwd = payload.get("cwd") or self._cwd
        elif kind == "response_item":
            return self._item(payload, line.get("timestamp"))
        elif kind == "compacted":
            ended = self.end()
            kept = payload.get("replacement_history")
            summary = [{"type": "message", "role": "user", "content": [_text(str(payload.get("message")))]}]
            self._items = list(kept) if isinstance(kept, list) else summary
            return ended
        else:
            self._note_usage(str(kind), payload)
        return None

    def end(self) -> Call | None:
        """The call whose items have been read; None when there is none."""
        if not self._said or self._id is None:
            return None
        said, self._said = self._said, []
        lacks = ("tools",) if self._instructions else ("system prompt", "tools")
        self._reading.lacks |= set(lacks)
        request: Json = {"model": self._model, "input": list(self._items)}
        if self._instructions:
            request["instructions"] = self._instructions
        self._items += said
        self._count += 1
        response: Json = {
            "id": self._response or f"{self._id}-{self._count}", "object": "response", "status": "completed",
            "model": self._model, "output": said,
        }  # fmt: skip
        if self._usage is not None:
            response["usage"] = _usage(self._usage)
        started, self._at, self._usage, self._response = self._at, None, None, None
        return Call(
            agent=AGENT,
            session=self._id,
            message=str(self._count),
            dialect="responses",
            request=request,
            response=response,
            started_at=started,
            cwd=self._cwd,
            lacks=lacks,
        )

    def _begin(self, payload: Json) -> None:
        self._id = str(payload.get("id"))
        self._cwd = payload.get("cwd")
        instructions = payload.get("base_instructions") or payload.get("instructions")
        if isinstance(instructions, dict):
            instructions = instructions.get("text")
        self._instructions = instructions if isinstance(instructions, str) else None

    def _item(self, item: Json, at: object) -> Call | None:
        said = item.get("type") in _SAID or (item.get("type") == "message" and item.get("role") == "assistant")
        if not said:
            ended = self.end()
            self._items.append(item)
            return ended
        self._at = self._at or (at if isinstance(at, str) else None)
        self._said.append(item)
        return None

    def _note_usage(self, kind: str, payload: Json) -> None:
        """What a line says of the tokens of the call that is being read."""
        if not self._said:
            return
        info = payload.get("info") if isinstance(payload.get("info"), dict) else payload
        for name, of in _USAGES:
            if kind == of and isinstance(info, dict) and isinstance(info.get(name), dict):
                self._usage = info[name]
        if kind == "token_usage_record" and isinstance(payload.get("response_id"), str):
            self._response = payload["response_id"]


def _usage(usage: Json) -> Json:
    """The usage as a response has it."""
    asked, answered = number(usage.get("input_tokens")), number(usage.get("output_tokens"))
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": number(usage.get("cached_input_tokens"))},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": number(usage.get("reasoning_output_tokens"))},
        "total_tokens": asked + answered,
    }


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}
