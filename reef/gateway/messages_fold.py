"""Folding a messages stream into the one reply that it would have been without streaming.

Pieces of every block are joined by the block's index; fields that nobody knows are kept. A tool's input comes as pieces
of JSON text; one that is no JSON in the end stays the text that it was.
"""

from __future__ import annotations

from typing import Any

from reef.gateway.dialect import Arguments, ReplyFacts, calls_line, count, error_message, first_line
from reef.gateway.folding import StreamFold, joined, whole
from reef.gateway.lenient import dump, parse
from reef.gateway.named import with_receipt
from reef.gateway.requests import content_text
from reef.gateway.sse import Event

_INPUT = "partial_json"
_BLOCK_OF = {"thinking_delta": "thinking", "signature_delta": "thinking", "input_json_delta": "tool_use"}
"""What a piece says of a block whose start did not come."""


class MessagesFold(StreamFold):
    """Takes the bytes of one stream; parses them when asked to."""

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}

    def facts(self, finished: bool = False) -> ReplyFacts:
        self._read(finished)
        if not self._message and not self._blocks:
            body = dump({"type": "error", "error": {"message": self._error}}) if self._error else None
            return ReplyFacts(body=body, ended=self._ended, error=self._problem(False))
        reply = {"type": "message", "role": "assistant", **self._message}
        reply["content"] = [_finished(self._blocks[index]) for index in sorted(self._blocks)]
        if self._error is not None:
            reply["error"] = {"message": self._error}
        facts = reply_facts(reply, dump(reply))
        facts.ended = self._ended
        facts.error = facts.error or self._problem(True)
        return facts

    def ending(self, event: bytes, receipt: str) -> bytes:
        return with_receipt(event, receipt)

    def _take(self, event: Event) -> None:
        data = self._object(event)
        if data is None:
            return
        kind = data.get("type", event.name)
        if kind == "error" or data.get("error"):
            self._error = error_message(data)
        elif kind == "message_start" and isinstance(data.get("message"), dict):
            self._message.update(data["message"])
        elif kind == "message_delta":
            self._take_end(data)
        elif kind == "message_stop":
            self._ended = True
        elif count(data.get("index")) is not None:
            self._take_block(kind, data["index"], data)

    def _take_end(self, data: dict[str, Any]) -> None:
        """The facts of the whole message that are known at its end."""
        for name, value in data.items():
            if name == "delta" and isinstance(value, dict):
                self._message.update(value)
            elif name == "usage" and isinstance(value, dict):
                usage = self._message.get("usage")
                known = usage if isinstance(usage, dict) else {}
                self._message["usage"] = known | {part: n for part, n in value.items() if n is not None}
            elif name not in ("type", "delta"):
                self._message[name] = value

    def _take_block(self, kind: object, index: int, data: dict[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        if kind == "content_block_start" and isinstance(data.get("content_block"), dict):
            block.update(data["content_block"])
            self._said += [text for name in ("text", "thinking") if isinstance(text := block.get(name), str)]
            return
        delta = data.get("delta")
        for name, value in delta.items() if isinstance(delta, dict) else ():
            if name == "type":
                block.setdefault("type", _BLOCK_OF.get(value, "text"))
            elif name == "citation":
                block["citations"] = [*(block.get("citations") or ()), value]
            elif value is not None:
                block[name] = joined(block.get(name), value)
                if isinstance(value, str) and name != "signature":
                    self._said.append(value)


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = whole({name: value for name, value in block.items() if name != _INPUT})
    text = whole(block.get(_INPUT))
    if isinstance(text, str) and text.strip():
        try:
            found["input"] = parse(text.encode("utf-8", "surrogatepass"))
        except ValueError:
            found["input"] = text
    return found


def body_of_text(text: bytes) -> bytes:
    """A reply that holds what was flushed of a stream before reef ended: the texts in the order in which they came."""
    block = {"type": "text", "text": text.decode("utf-8", "replace")}
    return dump({"type": "message", "role": "assistant", "content": [block], "stop_reason": None})


def reply_facts(reply: dict[str, Any], body: bytes) -> ReplyFacts:
    """The facts of one whole reply; `body` is its bytes."""
    facts = ReplyFacts(body=body, ended=True)
    if reply.get("error") or reply.get("type") == "error":
        facts.error = error_message(reply)
    reason = reply.get("stop_reason")
    facts.finish_reason = reason if isinstance(reason, str) else None
    content = reply.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    texts = [block for block in blocks if block.get("type") == "text"]
    shown = ((call.get("name"), dump(call.get("input")).decode()) for call in calls)
    facts.preview = first_line(content_text(texts)) or calls_line(shown)
    arguments = Arguments()
    for call in calls:
        arguments.check(call.get("name"), call.get("input"))
    facts.bad_arguments = arguments.bad
    usage = reply.get("usage")
    if isinstance(usage, dict):
        facts.cached_tokens = count(usage.get("cache_read_input_tokens"))
        facts.completion_tokens = count(usage.get("output_tokens"))
        fresh = count(usage.get("input_tokens"))
        if fresh is not None:
            # Here, unlike in OpenAI's counts, the cached part of a prompt is not in the first number.
            made = count(usage.get("cache_creation_input_tokens"))
            facts.prompt_tokens = fresh + (facts.cached_tokens or 0) + (made or 0)
    return facts
