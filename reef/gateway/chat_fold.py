"""Folding a chat stream into the one reply that it would have been without streaming.

Pieces of every choice and of every tool call are joined by their index; fields that nobody knows are kept: texts are
joined, lists are extended, anything else keeps its last value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reef.gateway.dialect import BROKEN_OFF, Arguments, ReplyFacts, calls_line, count, error_message, first_line
from reef.gateway.folding import StreamFold, joined, whole
from reef.gateway.lenient import dump
from reef.gateway.named import with_receipt
from reef.gateway.requests import content_text
from reef.gateway.sse import Event, first_data

DONE = b"[DONE]"
"""The data of the event that ends a stream."""


class ChatFold(StreamFold):
    """Takes the bytes of one stream; parses them when asked to."""

    def __init__(self) -> None:
        super().__init__()
        self._top: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self._counted = 0
        """How many chunks said something of the usage."""

    def facts(self, finished: bool = False) -> ReplyFacts:
        self._read(finished)
        if not self._top and not self._choices:
            body = dump({"error": {"message": self._error}}) if self._error else None
            return ReplyFacts(body=body, ended=self._ended, error=self._problem(bool(self._choices)))
        reply = dict(self._top)
        reply["object"] = "chat.completion"
        reply["choices"] = [_finished(self._choices[index]) for index in sorted(self._choices)]
        if self._usage is not None:
            reply["usage"] = self._usage
        if self._error is not None:
            reply["error"] = {"message": self._error}
        facts = reply_facts(reply, dump(reply))
        facts.ended = self._ended
        facts.error = facts.error or self._problem(bool(self._choices))
        return facts

    def ending(self, event: bytes, receipt: str) -> bytes:
        found = first_data(event)
        if found is not None and found[0].strip() != DONE:
            return with_receipt(event, receipt)
        chunk: dict[str, Any] = {
            "id": self._top.get("id", f"chatcmpl-{receipt}"),
            "object": "chat.completion.chunk",
            "created": self._top.get("created", 0),
            "model": self._top.get("model", ""),
            # Clients keep of these what the last chunk says.
            **{name: self._top[name] for name in ("system_fingerprint", "service_tier") if name in self._top},
            "choices": [],
            **({"usage": self._usage} if self._counted > 1 else {}),
            "reef": {"agent_record_id": receipt},
        }
        return b"data: " + dump(chunk) + b"\n\n" + event

    def _take(self, event: Event) -> None:
        if event.data.strip() == DONE:
            self._ended = True
            return
        chunk = self._object(event)
        if chunk is None:
            return
        if chunk.get("error") or event.name == "error":
            self._error = error_message(chunk)
        for name, value in chunk.items():
            if name == "choices":
                for choice in self._objects(value):
                    self._take_choice(choice)
            elif name == "usage":
                self._usage = value if value is not None else self._usage
                self._counted += value is not None
            elif name != "error" and value is not None:
                self._top[name] = value

    def _take_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index", 0)
        if not isinstance(index, int):
            self._unread += index is not None
            index = 0
        known = self._choices.setdefault(index, {"index": index, "message": {}, "calls": {}})
        for name, value in choice.items():
            if name == "delta" and isinstance(value, dict):
                self._take_delta(known, value)
            elif name == "logprobs" and isinstance(value, dict):
                known["logprobs"] = joined(known.get("logprobs"), value)
            elif name == "delta" or (name == "message" and "delta" not in choice):
                self._unread += value is not None
            elif name not in ("index", "message", "calls") and value is not None:
                known[name] = value

    def _take_delta(self, choice: dict[str, Any], delta: dict[str, Any]) -> None:
        message = choice["message"]
        for name, value in delta.items():
            if name == "tool_calls":
                for call in self._objects(value):
                    self._take_call(choice["calls"], call)
            elif name == "role":
                message[name] = value or message.get(name)
            elif value is not None:
                message[name] = joined(message.get(name), value)
                if isinstance(value, str):
                    self._said.append(value)

    def _take_call(self, calls: dict[Any, dict[str, Any]], piece: dict[str, Any]) -> None:
        """Join one piece of a tool call: by index, else by its id, else to the last one."""
        key = piece.get("index")
        if key is None:
            key = piece.get("id") or None
        if isinstance(key, list | dict):
            self._unread += 1
            key = None
        if key is None:
            key = next(reversed(calls)) if calls else 0
        known = calls.setdefault(key, {})
        for name, value in piece.items():
            if name == "function" and isinstance(value, dict):
                function = known.setdefault("function", {})
                for part, text in value.items():
                    if part == "arguments" and isinstance(text, str):
                        function[part] = joined(function.get(part), text)
                        self._said.append(text)
                    elif text:
                        # A name comes whole; a server that repeats it in every piece does not mean it twice.
                        function[part] = text
            elif name == "function":
                self._unread += value is not None
            elif name != "index" and value is not None:
                known[name] = value


def _finished(choice: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **whole(choice["message"])}
    calls = [whole(call) for call in choice["calls"].values()]
    if calls:
        message["tool_calls"] = calls
        message["content"] = message["content"] or None
    rest = {name: whole(value) for name, value in choice.items() if name not in ("message", "calls", "index")}
    return {"index": choice.get("index", 0), "message": message, "finish_reason": None, **rest}


def body_of_text(text: bytes) -> bytes:
    """A reply that holds what was flushed of a stream before reef ended: the texts in the order in which they came."""
    message = {"role": "assistant", "content": text.decode("utf-8", "replace")}
    choices = [{"index": 0, "message": message, "finish_reason": None}]
    return dump({"object": "chat.completion", "choices": choices})


def reply_facts(reply: dict[str, Any], body: bytes) -> ReplyFacts:
    """The facts of one whole chat reply; `body` is its bytes."""
    facts = ReplyFacts(body=body, ended=True)
    if reply.get("error"):
        facts.error = error_message(reply)
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    reason = first.get("finish_reason")
    facts.finish_reason = reason if isinstance(reason, str) else None
    if reason == "abort":
        facts.error = facts.error or BROKEN_OFF
    message = first.get("message")
    if isinstance(message, dict):
        facts.preview = first_line(content_text(message.get("content"))) or calls_line(_calls(message))
        facts.bad_arguments = _bad_arguments(choices)
    usage = reply.get("usage")
    if isinstance(usage, dict):
        facts.prompt_tokens = count(usage.get("prompt_tokens"))
        facts.completion_tokens = count(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        facts.cached_tokens = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return facts


def _bad_arguments(choices: Any) -> tuple[str, ...]:
    arguments = Arguments()
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        for name, given in _calls(message) if isinstance(message, dict) else ():
            arguments.check(name, given)
    return arguments.bad


def _calls(message: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Name and arguments of every tool call of a message."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield function.get("name"), function.get("arguments")
