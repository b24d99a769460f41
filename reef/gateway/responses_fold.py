"""Folding a responses stream into the one reply that it would have been without streaming.

The last event holds the whole reply, and that is what is kept. What it leaves out (some servers send no output in it,
or a tool call without its arguments) is filled in from the events before; without a last event those are all there is.
"""

from __future__ import annotations

from typing import Any

from reef.gateway.dialect import Arguments, ReplyFacts, calls_line, count, error_message, first_line, short_text
from reef.gateway.folding import StreamFold, joined, whole
from reef.gateway.lenient import dump
from reef.gateway.named import with_receipt
from reef.gateway.requests import content_text
from reef.gateway.sse import Event

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_PARTS = {"content_part": ("content", "content_index"), "reasoning_summary_part": ("summary", "summary_index")}
"""Events about a part of an item: the list that holds it, its index."""
_IN_PARTS = {
    "output_text": ("content", "content_index", "text", "output_text"),
    "refusal": ("content", "content_index", "refusal", "refusal"),
    "reasoning_text": ("content", "content_index", "text", "reasoning_text"),
    "reasoning_summary_text": ("summary", "summary_index", "text", "summary_text"),
}
"""Text that belongs to a part of an item: the list that holds the part, its index, the field, the part's type."""
_IN_ITEM = {
    "function_call_arguments": "arguments",
    "mcp_call_arguments": "arguments",
    "custom_tool_call_input": "input",
    "code_interpreter_call_code": "code",
}
"""Text that belongs to an item: its field."""
_SAID = ("content", "summary", "name", "call_id", "arguments", "input", "code")
"""What events say of an item before the last one."""
_NO_END = ("in_progress", "queued")
"""What a response's status is while it has not ended: no reason why it did."""


class ResponsesFold(StreamFold):
    """Takes the bytes of one stream; parses them when asked to."""

    def __init__(self) -> None:
        super().__init__()
        self._reply: dict[str, Any] | None = None
        self._items: dict[int | str, dict[str, Any]] = {}
        self._kind = ""

    def facts(self, finished: bool = False) -> ReplyFacts:
        self._read(finished)
        if self._reply is None and not self._items:
            body = dump({"error": {"message": self._error}}) if self._error else None
            return ReplyFacts(body=body, ended=self._ended, error=self._problem(False))
        reply = dict(self._reply or {"object": "response", "status": "in_progress"})
        # Items that have an index stand in its order, the others behind them as they came.
        places = sorted(self._items, key=lambda place: place if isinstance(place, int) else len(self._items))
        seen = [whole(self._items[place]) for place in places]
        reply["output"] = _filled(reply.get("output"), seen)
        if self._error is not None and not reply.get("error"):
            reply["error"] = {"message": self._error}
        facts = reply_facts(reply, dump(reply))
        facts.ended = self._ended
        facts.error = facts.error or self._problem(True)
        return facts

    def ending(self, event: bytes, receipt: str) -> bytes:
        return event if self._kind == "response.failed" else with_receipt(event, receipt)

    def _take(self, event: Event) -> None:
        data = self._object(event)
        if data is None:
            return
        kind = data.get("type")
        kind = kind if isinstance(kind, str) else event.name
        if kind in _ENDS:
            self._ended = True
            self._kind = kind
        if isinstance(data.get("response"), dict):
            self._reply = data["response"]
        elif kind == "error" or data.get("error"):
            self._error = error_message(data if data.get("error") else {"error": data})
        else:
            self._take_part(kind, data)

    def _take_part(self, kind: str, data: dict[str, Any]) -> None:
        """An event that says something of one item."""
        name, _, what = kind.removeprefix("response.").rpartition(".")
        if name == "output_item" and isinstance(data.get("item"), dict):
            item = self._item_of(data)
            item.update(_fuller(data["item"], item))
        elif name in _PARTS:
            place, index = _PARTS[name]
            _set_part(self._item_of(data), place, data.get(index), data.get("part"))
        elif name in _IN_PARTS or name in _IN_ITEM:
            self._take_text(name, data, data.get("delta") if what == "delta" else None)
        elif name == "output_text.annotation":
            part = _part(self._item_of(data), "content", data.get("content_index"), "output_text")
            part["annotations"] = [*(part.get("annotations") or ()), data.get("annotation")]

    def _item_of(self, data: dict[str, Any]) -> dict[str, Any]:
        """The item that an event is about: by its index, else by its id, else the last one."""
        index, item = count(data.get("output_index")), data.get("item")
        if index is not None:
            return self._items.setdefault(index, {})
        name = item.get("id") if isinstance(item, dict) else data.get("item_id")
        if isinstance(name, str):
            same = (known for known in self._items.values() if known.get("id") == name)
            return next(same, None) or self._items.setdefault(name, {})
        last = next(reversed(self._items)) if self._items and item is None else len(self._items)
        return self._items.setdefault(last, {})

    def _take_text(self, name: str, data: dict[str, Any], delta: Any) -> None:
        """A piece of a text, or with `delta` None the whole of it."""
        item = self._item_of(data)
        if name in _IN_PARTS:
            place, index, field, kind = _IN_PARTS[name]
            holder = _part(item, place, data.get(index), kind)
        else:
            holder, field = item, _IN_ITEM[name]
        if isinstance(delta, str):
            holder[field] = joined(holder.get(field), delta)
            self._said.append(delta)
        elif isinstance(data.get(field), str):
            if not holder.get(field):
                self._said.append(data[field])
            holder[field] = data[field]


def _part(item: dict[str, Any], place: str, index: Any, kind: str) -> dict[str, Any]:
    """The part of an item that a piece of text belongs to, made when it is new."""
    parts = item.get(place)
    if not isinstance(parts, list):
        parts = item[place] = []
    number = count(index)
    number = number if number is not None and 0 <= number < 10_000 else 0
    while len(parts) <= number:
        parts.append({"type": kind})
    if not isinstance(parts[number], dict):
        parts[number] = {"type": kind}
    found: dict[str, Any] = parts[number]
    return found


def _set_part(item: dict[str, Any], place: str, index: Any, part: Any) -> None:
    if isinstance(part, dict):
        known = _part(item, place, index, str(part.get("type", "")))
        known.update(_fuller(part, known))


def _fuller(new: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """`new`, but what it leaves empty keeps what is known."""
    return {name: value for name, value in new.items() if not known.get(name) or not _is_empty(name, value)}


def _is_empty(name: str, value: Any) -> bool:
    return value in ("", None, []) or (name == "arguments" and value == "{}")


def _filled(output: Any, seen: list[dict[str, Any]]) -> list[Any]:
    """The last event's output with what only earlier events said."""
    if not isinstance(output, list) or not output:
        return seen
    by_id = {item["id"]: item for item in seen if isinstance(item.get("id"), str)}
    found: list[Any] = []
    for place, item in enumerate(output):
        if isinstance(item, dict):
            known = by_id.get(item.get("id", "")) or (seen[place] if place < len(seen) else {})
            if known.get("type") == item.get("type"):
                more = {name: known[name] for name in _SAID if known.get(name) and _is_empty(name, item.get(name))}
                item = {**item, **more}
        found.append(item)
    return found


def body_of_text(text: bytes) -> bytes:
    """A reply that holds what was flushed of a stream before reef ended: the texts in the order in which they came."""
    part = {"type": "output_text", "text": text.decode("utf-8", "replace"), "annotations": []}
    message = {"type": "message", "role": "assistant", "status": "incomplete", "content": [part]}
    return dump({"object": "response", "status": "in_progress", "output": [message]})


def reply_facts(reply: dict[str, Any], body: bytes) -> ReplyFacts:
    """The facts of one whole reply; `body` is its bytes."""
    facts = ReplyFacts(body=body, ended=True)
    status = reply.get("status")
    if reply.get("error"):
        facts.error = error_message(reply)
    elif status == "failed":
        facts.error = "the model server says that the response failed"
    details = reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    ended = status if isinstance(status, str) and status not in _NO_END else None
    facts.finish_reason = reason if isinstance(reason, str) else ended
    facts.name = short_text(reply.get("id"))
    output = reply.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    texts = [content_text(item.get("content")) for item in items if item.get("type") == "message"]
    calls = [item for item in items if item.get("type") == "function_call"]
    facts.preview = first_line("\n".join(texts)) or calls_line(
        (call.get("name"), call.get("arguments")) for call in calls
    )
    arguments = Arguments()
    for call in calls:
        arguments.check(call.get("name"), call.get("arguments"))
    facts.bad_arguments = arguments.bad
    usage = reply.get("usage")
    if isinstance(usage, dict):
        facts.prompt_tokens = count(usage.get("input_tokens"))
        facts.completion_tokens = count(usage.get("output_tokens"))
        found = usage.get("input_tokens_details")
        facts.cached_tokens = count(found.get("cached_tokens")) if isinstance(found, dict) else None
    return facts
