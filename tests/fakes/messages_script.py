"""The scripted model server's answers in Anthropic's messages format; the words are those of the chat script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.chat_script import Script
from tests.fakes.responses_script import named

_EMPTY: dict[str, dict[str, Any]] = {
    "tool_use": {"input": {}},
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
}
"""What a block of each type begins with."""


class MessagesScript(Script):
    """One request to `/v1/messages`, read."""

    def __init__(self, body: dict[str, Any], number: int) -> None:
        super().__init__({**body, "messages": _messages(body)}, number)

    @property
    def usage(self) -> dict[str, Any]:
        found = super().usage
        cached = found["prompt_tokens_details"]["cached_tokens"]
        return {
            "input_tokens": max(0, found["prompt_tokens"] - cached),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": found["completion_tokens"],
        }

    @property
    def finish_reason(self) -> str:
        return {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}[super().finish_reason]

    def count(self) -> dict[str, Any]:
        """The reply to a token count."""
        return {"input_tokens": super().usage["prompt_tokens"]}

    def completion(self) -> dict[str, Any]:
        return self._message() | {"content": self._blocks(), "stop_reason": self.finish_reason, "usage": self.usage}

    def events(self) -> Iterator[dict[str, Any] | None]:
        if "error first" in self.words:
            yield {"type": "error", "error": {"type": "overloaded_error", "message": "quota exceeded"}}
            return
        yield {"type": "message_start", "message": self._message() | {"usage": self.usage | {"output_tokens": 1}}}
        yield {"type": "ping"}
        sent = 0
        for event in self._block_events():
            if event["type"] == "content_block_delta":
                if self.error_after is not None and sent >= self.error_after:
                    yield {"type": "error", "error": {"type": "api_error", "message": "engine fell over"}}
                    return
                sent += 1
            yield event
        if "no finish" not in self.words:
            ending = {"stop_reason": self.finish_reason, "stop_sequence": None}
            yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": self.usage["output_tokens"]}}
        if "no done" not in self.words:
            yield {"type": "message_stop"}

    def framed(self, event: dict[str, Any] | None) -> list[bytes]:
        return named(super().framed(event), event)

    def is_last(self, event: dict[str, Any] | None) -> bool:
        return event is not None and event["type"] == "message_stop"

    def _block_events(self) -> Iterator[dict[str, Any]]:
        for index, block in enumerate(self._blocks()):
            kind = block["type"]
            empty = _EMPTY[kind]
            yield {"type": "content_block_start", "index": index, "content_block": block | empty}
            for delta in self._deltas_of(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}

    def _deltas_of(self, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if block["type"] == "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in self.cut(block["thinking"], 12))
            yield {"type": "signature_delta", "signature": block["signature"]}
        elif block["type"] == "text":
            yield from ({"type": "text_delta", "text": piece} for piece in self.text_pieces())
        else:
            assert self.tool_call is not None
            arguments = self.tool_call["function"]["arguments"]
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in self.cut(arguments, 5))

    def _blocks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if "reasoning" in self.words:
            found.append({"type": "thinking", "thinking": self.words["reasoning"], "signature": "c2VhbA=="})
        call = self.tool_call
        if call is None:
            return [*found, {"type": "text", "text": self.text}]
        try:
            given = json.loads(call["function"]["arguments"])
        except ValueError:
            given = {}
        name = call["function"]["name"]
        return [*found, {"type": "tool_use", "id": f"toolu_{self.number}", "name": name, "input": given}]

    def _message(self) -> dict[str, Any]:
        found = self._base("message")
        del found["object"], found["created"]
        found |= {"id": f"msg_fake{self.number}", "type": "message", "role": "assistant", "content": []}
        return found | {"stop_reason": None, "stop_sequence": None, "usage": self.usage}


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The conversation as the chat script reads it; a result of a tool goes behind the text beside it."""
    found: list[dict[str, Any]] = []
    if body.get("system"):
        found.append({"role": "system", "content": body["system"]})
    for message in body["messages"]:
        content = message["content"]
        results = [part for part in content if part.get("type") == "tool_result"] if isinstance(content, list) else []
        if len(results) < len(content):
            found.append(message)
        found += [{"role": "tool", "content": part.get("content")} for part in results]
    return found
