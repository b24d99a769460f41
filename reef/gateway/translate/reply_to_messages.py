"""A reply for an Anthropic messages client."""

from __future__ import annotations

from reef.engines.engine import MESSAGES
from reef.gateway.translate import seals
from reef.gateway.translate.errors import error_object
from reef.gateway.translate.hub import Json, input_of
from reef.gateway.translate.reply import Block, End, Failure, Setting, Usage

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
"""The hub's words for why a reply ended; a named stop sequence makes `stop` into `stop_sequence`."""


class MessagesWriter:
    """Writes one reply."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._message: Json = {
            "id": f"msg_{setting.receipt}",
            "type": "message",
            "role": "assistant",
            "model": setting.model(None),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(Usage()),
        }

    def begin(self, model: str | None) -> list[Json]:
        """Every count of usage is there, as a number, though the upstream gives them only at the end."""
        self._message["model"] = self._setting.model(model)
        return [{"type": "message_start", "message": {**self._message, "content": []}}]

    def open(self, block: Block) -> list[Json]:
        start: Json
        if block.kind == "call":
            start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
        elif block.kind == "reasoning" and seals.opened(block.seal)[0] == seals.REDACTED:
            start = seals.to_block("", block.seal)
        elif block.kind == "reasoning":
            start = {"type": "thinking", "thinking": "", "signature": ""}
        else:
            start = {"type": "text", "text": ""}
        return [{"type": "content_block_start", "index": block.index, "content_block": start}]

    def piece(self, block: Block, text: str) -> list[Json]:
        if block.kind == "call":
            delta: Json = {"type": "input_json_delta", "partial_json": text}
        elif block.kind == "reasoning":
            delta = {"type": "thinking_delta", "thinking": text}
        else:
            delta = {"type": "text_delta", "text": text}
        return [{"type": "content_block_delta", "index": block.index, "delta": delta}]

    def close(self, block: Block) -> list[Json]:
        whole = self._whole_block(block)
        self._message["content"].append(whole)
        stop: Json = {"type": "content_block_stop", "index": block.index}
        if whole["type"] != "thinking":
            return [stop]
        delta = {"type": "signature_delta", "signature": whole["signature"]}
        return [{"type": "content_block_delta", "index": block.index, "delta": delta}, stop]

    def end(self, end: End) -> list[Json]:
        reason = _STOP_REASONS[end.finish]
        named = end.stop_sequence if reason == "end_turn" else None
        delta = {"stop_reason": "stop_sequence" if named else reason, "stop_sequence": named}
        self._message |= delta
        self._message["usage"] = usage_object(end.usage or Usage())
        return [
            {"type": "message_delta", "delta": delta, "usage": self._message["usage"]},
            {"type": "message_stop"},
        ]

    def fail(self, failure: Failure) -> list[Json]:
        return [error_object(failure, MESSAGES)]

    def whole(self) -> Json:
        return self._message

    def _whole_block(self, block: Block) -> Json:
        if block.kind == "call":
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": input_of(block.text)}
        if block.kind == "reasoning":
            return seals.to_block(block.text, block.seal)
        return {"type": "text", "text": block.text}


def usage_object(usage: Usage) -> Json:
    """Usage with every count that clients read; the input does not count what a cache gave or took."""
    return {
        "input_tokens": max(0, usage.input - usage.cached - usage.written),
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
