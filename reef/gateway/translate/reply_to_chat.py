"""A reply for an OpenAI chat client."""

from __future__ import annotations

from reef.engines.engine import CHAT
from reef.gateway.translate import seals
from reef.gateway.translate.errors import error_object
from reef.gateway.translate.hub import Json
from reef.gateway.translate.reply import Block, End, Failure, Setting, Usage

_FIELDS = {"text": "content", "refusal": "refusal", "reasoning": "reasoning_content"}
"""Where a message has each kind of text."""


class ChatWriter:
    """Writes one reply. Reasoning goes into `reasoning_content`; what its vendor has sealed also into
    `reasoning_details`, for clients that send those back."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._top: Json = {
            "id": f"chatcmpl-{setting.receipt}",
            "created": setting.created,
            "model": setting.model(None),
        }
        self._pieces: dict[str, list[str]] = {}
        self._calls: list[Json] = []
        self._details: list[Json] = []
        self._thoughts = 0
        self._choice: Json = {"index": 0, "finish_reason": None}
        self._usage: Usage | None = None

    def begin(self, model: str | None) -> list[Json]:
        self._top["model"] = self._setting.model(model)
        return [self._chunk({"role": "assistant", "content": ""})]

    def open(self, block: Block) -> list[Json]:
        if block.kind == "call":
            one = {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": ""}}
            self._calls.append(one)
            return [self._chunk({"tool_calls": [{"index": len(self._calls) - 1, **one}]})]
        if block.kind != "reasoning":
            return []
        self._thoughts += 1
        return self.piece(block, "\n\n") if self._pieces.get("reasoning_content") else []

    def piece(self, block: Block, text: str) -> list[Json]:
        if block.kind == "call":
            arguments = {"index": len(self._calls) - 1, "function": {"arguments": text}}
            return [self._chunk({"tool_calls": [arguments]})]
        name = _FIELDS[block.kind]
        self._pieces.setdefault(name, []).append(text)
        return [self._chunk({name: text})]

    def close(self, block: Block) -> list[Json]:
        if block.kind == "call":
            self._calls[-1] = {**self._calls[-1], "function": {"name": block.name, "arguments": block.text}}
        if block.kind != "reasoning":
            return []
        detail = seals.to_detail(block.text, block.seal, self._thoughts - 1)
        if detail is None:
            return []
        self._details.append(detail)
        return [self._chunk({"reasoning_details": [detail]})]

    def end(self, end: End) -> list[Json]:
        self._choice["finish_reason"] = end.finish
        if end.stop_sequence:
            self._choice["stop_reason"] = end.stop_sequence
        self._usage = end.usage
        last = self._chunk({})
        last["choices"] = [{**last["choices"][0], **self._choice}]
        options = self._setting.request.get("stream_options")
        if end.usage is None or not (isinstance(options, dict) and options.get("include_usage") is True):
            return [last]
        return [last, {**last, "choices": [], "usage": usage_object(end.usage)}]

    def fail(self, failure: Failure) -> list[Json]:
        return [error_object(failure, CHAT)]

    def whole(self) -> Json:
        texts = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        message: Json = {"role": "assistant", "content": None if self._calls else "", "refusal": None, **texts}
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, **self._choice}
        reply: Json = {**self._top, "object": "chat.completion", "choices": [choice]}
        return reply if self._usage is None else {**reply, "usage": usage_object(self._usage)}

    def _chunk(self, delta: Json) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return {**self._top, "object": "chat.completion.chunk", "choices": [choice]}


def usage_object(usage: Usage) -> Json:
    """Usage as chat completions have it."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
