"""What an Anthropic messages upstream says."""

from __future__ import annotations

from typing import Any

from reef.gateway.lenient import dump
from reef.gateway.translate import seals
from reef.gateway.translate.errors import failure_of
from reef.gateway.translate.hub import Json
from reef.gateway.translate.reply import (
    Arguments,
    Begin,
    Called,
    End,
    Failure,
    Finish,
    Pause,
    Said,
    Usage,
    Word,
    count,
    place,
)

_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Why a reply ended, in the hub's words; anything else is `stop`."""
_PIECES = {"text_delta": "text", "thinking_delta": "thinking"}


class MessagesReader:
    """Reads one reply."""

    def __init__(self) -> None:
        self._usage: Json = {}
        self._reason: str | None = None
        self._sequence: str | None = None
        self._calls: dict[Any, Json] = {}
        self._others: set[Any] = set()
        """Blocks whose pieces are no part of the answer: what the server's own tools are called with."""

    def whole(self, reply: Json) -> list[Word]:
        if reply.get("type") == "error" or reply.get("error"):
            return [failure_of(reply)]
        content = reply.get("content")
        if not isinstance(content, list):
            return [Failure("the model server's reply holds no answer")]
        words: list[Word] = [self._begin(reply)]
        for index, block in enumerate(content):
            if isinstance(block, dict):
                words += self._start(index, block)
                words += self._stop(index)
        self._note(reply)
        return [*words, self._end()]

    def take(self, event: Json, name: str = "") -> list[Word]:
        kind = event.get("type")
        if kind == "error" or name == "error":
            return [failure_of(event)]
        index = place(event.get("index"))
        if kind == "message_start" and isinstance(event.get("message"), dict):
            return [self._begin(event["message"])]
        if kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            return self._start(index, event["content_block"])
        if kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            return self._delta(index, event["delta"])
        if kind == "content_block_stop":
            return self._stop(index)
        if kind == "message_delta":
            self._note({**event, **(event["delta"] if isinstance(event.get("delta"), dict) else {})})
        return [self._end()] if kind == "message_stop" else []

    def done(self) -> list[Word]:
        return []

    def _begin(self, message: Json) -> Begin:
        if isinstance(message.get("usage"), dict):
            self._usage |= message["usage"]
        model = message.get("model")
        return Begin(model if isinstance(model, str) and model else None)

    def _start(self, index: Any, block: Json) -> list[Word]:
        kind = block.get("type")
        self._others.discard(index)
        if kind == "tool_use":
            self._calls[index] = {"input": block.get("input"), "told": False}
            return [Called(index, str(block.get("id") or ""), str(block.get("name") or ""))]
        if kind == "redacted_thinking":
            found = seals.from_block(block)
            return [Pause(), Said("", "reasoning", found["seal"])]
        if kind == "thinking":
            found = seals.from_block(block)
            sealed = found["seal"] if block.get("signature") else None
            return [Pause(), Said(found["text"], "reasoning", sealed)]
        if kind == "text":
            return self._piece("text", block.get("text"))
        self._others.add(index)
        return []

    def _delta(self, index: Any, delta: Json) -> list[Word]:
        kind = delta.get("type")
        if index in self._others:
            return []
        if kind == "input_json_delta":
            text = delta.get("partial_json")
            if not isinstance(text, str) or not text:
                return []
            self._calls.setdefault(index, {"input": None})["told"] = True
            return [Arguments(index, text)]
        if kind == "signature_delta":
            return [Said("", "reasoning", seals.seal(seals.SIGNATURE, str(delta.get("signature") or "")))]
        field = _PIECES.get(str(kind))
        return self._piece(field, delta.get(field)) if field else []

    def _piece(self, field: str, text: Any) -> list[Word]:
        if not isinstance(text, str) or not text:
            return []
        return [Said(text) if field == "text" else Said(text, "reasoning")]

    def _stop(self, index: Any) -> list[Word]:
        """Some servers give a call's input whole, with its start; without any it is an empty object."""
        call = self._calls.pop(index, None)
        if call is None or call.get("told"):
            return []
        given = call["input"]
        return [Arguments(index, dump(given if isinstance(given, dict) else {}).decode())]

    def _note(self, message: Json) -> None:
        reason, sequence, usage = message.get("stop_reason"), message.get("stop_sequence"), message.get("usage")
        self._reason = reason if isinstance(reason, str) else self._reason
        self._sequence = sequence if isinstance(sequence, str) and sequence else self._sequence
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _end(self) -> End:
        usage = usage_of(self._usage) if self._usage else None
        return End(_FINISH.get(self._reason or "", "stop"), usage, self._sequence)


def usage_of(usage: Json) -> Usage:
    """The usage of a messages reply; its input does not count what a cache gave or took."""
    cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input=count(usage.get("input_tokens")) + cached + written,
        output=count(usage.get("output_tokens")),
        cached=cached,
        written=written,
        reasoning=count(details.get("thinking_tokens")) or count(details.get("reasoning_tokens")),
    )
