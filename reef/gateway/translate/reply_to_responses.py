"""A reply for an OpenAI responses client.

A stream is `response.created`, `response.in_progress`, then for each item `output_item.added`, what belongs to it, and
`output_item.done`, at last `response.completed`, `response.incomplete` or `response.failed` with the whole response.
All events are counted by `sequence_number`.
"""

from __future__ import annotations

from typing import Any

from reef.engines.engine import RESPONSES
from reef.gateway.translate import seals
from reef.gateway.translate.errors import error_object
from reef.gateway.translate.hub import Json
from reef.gateway.translate.reply import Block, End, Failure, Setting, Usage

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""What a response says again of its request, with what it says where the request does not."""
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ERROR_CODES = {429: "rate_limit_exceeded", 529: "rate_limit_exceeded"}
"""The few codes of a failed response that clients act on; all others are `server_error`."""
_PREFIXES = {"text": "msg", "refusal": "msg", "reasoning": "rs", "call": "fc"}


class ResponsesWriter:
    """Writes one reply; every block is an item of its own."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        request = setting.request
        self._response: Json = {
            "id": f"resp_{setting.receipt}",
            "object": "response",
            "created_at": setting.created,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": setting.model(None),
            "output": [],
            **{name: default if request.get(name) is None else request[name] for name, default in _ECHOED.items()},
            "store": False,
            "usage": None,
        }
        self._number = 0
        self._begun = False
        self._summarised = -1

    def begin(self, model: str | None) -> list[Json]:
        self._begun = True
        self._response["model"] = self._setting.model(model)
        return [self._status("response.created"), self._status("response.in_progress")]

    def open(self, block: Block) -> list[Json]:
        item = self._item(block, "in_progress")
        if block.kind == "call":
            item["arguments"] = ""
        elif block.kind == "reasoning":
            item["summary"] = []
        else:
            item["content"] = []
        events = [self._event("response.output_item.added", output_index=block.index, item=item)]
        if block.kind in ("text", "refusal"):
            events.append(self._of(block, "response.content_part.added", part=_part(block, "")))
        return events

    def piece(self, block: Block, text: str) -> list[Json]:
        if block.kind == "call":
            return [self._of(block, "response.function_call_arguments.delta", delta=text)]
        if block.kind == "reasoning":
            return [*self._summary(block), self._of(block, "response.reasoning_summary_text.delta", delta=text)]
        if block.kind == "refusal":
            return [self._of(block, "response.refusal.delta", delta=text)]
        return [self._of(block, "response.output_text.delta", delta=text, logprobs=[])]

    def close(self, block: Block) -> list[Json]:
        text = block.text
        if block.kind == "call":
            events = [self._of(block, "response.function_call_arguments.done", arguments=text, name=block.name)]
        elif block.kind == "reasoning":
            events = self._summary_done(block)
        else:
            said: Json = {"refusal": text} if block.kind == "refusal" else {"text": text, "logprobs": []}
            name = "response.refusal.done" if block.kind == "refusal" else "response.output_text.done"
            events = [
                self._of(block, name, **said),
                self._of(block, "response.content_part.done", part=_part(block, text)),
            ]
        item = self._item(block, "incomplete" if block.cut else "completed")
        self._response["output"].append(item)
        return [*events, self._event("response.output_item.done", output_index=block.index, item=item)]

    def end(self, end: End) -> list[Json]:
        reason = _INCOMPLETE.get(end.finish)
        self._response["status"] = "incomplete" if reason else "completed"
        self._response["incomplete_details"] = {"reason": reason} if reason else None
        self._response["usage"] = None if end.usage is None else usage_object(end.usage)
        return [self._status(f"response.{self._response['status']}")]

    def fail(self, failure: Failure) -> list[Json]:
        """The failed response; it must have begun, because clients take nothing before that."""
        events = [] if self._begun else self.begin(None)
        self._response["status"] = "failed"
        code = _ERROR_CODES.get(failure.status, "server_error")
        self._response["error"] = {
            "code": code,
            "message": failure.message,
            "type": error_object(failure, RESPONSES)["error"]["type"],
        }
        return [*events, self._status("response.failed")]

    def whole(self) -> Json:
        return self._response

    def _summary(self, block: Block) -> list[Json]:
        """The beginning of a summary, with its first text: reasoning that is only sealed has none."""
        if self._summarised == block.index:
            return []
        self._summarised = block.index
        return [self._of(block, "response.reasoning_summary_part.added", part={"type": "summary_text", "text": ""})]

    def _summary_done(self, block: Block) -> list[Json]:
        if self._summarised != block.index:
            return []
        part = {"type": "summary_text", "text": block.text}
        return [
            self._of(block, "response.reasoning_summary_text.done", text=block.text),
            self._of(block, "response.reasoning_summary_part.done", part=part),
        ]

    def _item(self, block: Block, status: str) -> Json:
        item_id = f"{_PREFIXES[block.kind]}_{self._setting.receipt}_{block.index}"
        if block.kind == "reasoning":
            return seals.to_item(block.text, block.seal, item_id)
        if block.kind == "call":
            call = {"call_id": block.id, "name": block.name, "arguments": block.text, "status": status}
            return {"id": item_id, "type": "function_call", **call}
        content = [_part(block, block.text)]
        return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _of(self, block: Block, kind: str, **fields: Any) -> Json:
        """An event about what is inside an item."""
        places: Json = {"item_id": f"{_PREFIXES[block.kind]}_{self._setting.receipt}_{block.index}"}
        places["output_index"] = block.index
        if block.kind == "reasoning":
            places["summary_index"] = 0
        elif block.kind != "call":
            places["content_index"] = 0
        return self._event(kind, **places, **fields)

    def _status(self, kind: str) -> Json:
        return self._event(kind, response={**self._response, "output": list(self._response["output"])})

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}


def _part(block: Block, text: str) -> Json:
    if block.kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def usage_object(usage: Usage) -> Json:
    """Usage as responses have it."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
