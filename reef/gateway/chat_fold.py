"""Folding a chat stream into the one reply that it would have been without streaming.

Pieces of every choice and of every tool call are joined by their index; fields that nobody knows are kept: texts are
joined, lists are extended, anything else keeps its last value.
"""

from __future__ import annotations

from typing import Any

from reef.credentials import clean
from reef.gateway.dialect import PREVIEW_CHARACTERS, ReplyFacts, first_line
from reef.gateway.lenient import dump, parse
from reef.gateway.sse import Event, EventReader


class ChatFold:
    """Takes the bytes of one stream; parses them when asked to."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._pieces: list[bytes] = []
        self._top: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self._error: str | None = None
        self._ended = False
        self._said: list[str] = []
        self._unread = 0
        """Places where the stream holds something that the folded reply is without."""
        self.pending = 0

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.pending += len(piece)

    def catch_up(self) -> bytes:
        pieces, self._pieces, self.pending = self._pieces, [], 0
        for piece in pieces:
            for event in self._reader.feed(piece):
                self._take(event)
        said, self._said = self._said, []
        return "".join(said).encode("utf-8", "surrogatepass")

    def facts(self, finished: bool = False) -> ReplyFacts:
        self.catch_up()
        if finished:
            for event in self._reader.finish():
                self._take(event)
        if not self._top and not self._choices:
            body = dump({"error": {"message": self._error}}) if self._error else None
            return ReplyFacts(body=body, ended=self._ended, error=self._problem())
        reply = dict(self._top)
        reply["object"] = "chat.completion"
        reply["choices"] = [_finished(self._choices[index]) for index in sorted(self._choices)]
        if self._usage is not None:
            reply["usage"] = self._usage
        if self._error is not None:
            reply["error"] = {"message": self._error}
        facts = reply_facts(reply, dump(reply))
        facts.ended = self._ended
        facts.error = facts.error or self._problem()
        return facts

    def ending(self, event: bytes, receipt: str) -> bytes:
        chunk = {
            "id": self._top.get("id", f"chatcmpl-{receipt}"),
            "object": "chat.completion.chunk",
            "created": self._top.get("created", 0),
            "model": self._top.get("model", ""),
            "choices": [],
            "reef": {"agent_record_id": receipt},
        }
        return b"data: " + dump(chunk) + b"\n\n" + event

    def _take(self, event: Event) -> None:
        data = event.data.strip()
        if data == b"[DONE]":
            self._ended = True
        # Some servers keep a connection alive with events of no content.
        if data in (b"", b"[DONE]"):
            return
        try:
            chunk = parse(data)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            self._unread += 1
            return
        if chunk.get("error") or event.name == "error":
            self._error = error_message(chunk)
        for name, value in chunk.items():
            if name == "choices":
                for choice in self._objects(value):
                    self._take_choice(choice)
            elif name == "usage":
                self._usage = value if value is not None else self._usage
            elif name != "error" and value is not None:
                self._top[name] = value

    def _problem(self) -> str | None:
        """Why the folded reply is not what the stream said; None when it is."""
        if self._error is None and self._unread:
            return "parts of the model server's stream could not be read"
        if self._error is None and self._ended and not self._choices:
            return "the model server's stream holds no reply"
        return self._error

    def _objects(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list; whatever else stands there, or in place of the list, is not read."""
        listed = value if isinstance(value, list) else [value]
        found = [item for item in value if isinstance(item, dict)] if listed is value else []
        self._unread += sum(item is not None for item in listed) - len(found)
        return found

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
                known["logprobs"] = _joined(known.get("logprobs"), value)
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
                message[name] = _joined(message.get(name), value)
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
                        function[part] = _joined(function.get(part), text)
                        self._said.append(text)
                    elif text:
                        # A name comes whole; a server that repeats it in every piece does not mean it twice.
                        function[part] = text
            elif name == "function":
                self._unread += value is not None
            elif name != "index" and value is not None:
                known[name] = value


class _Pieces(list[str]):
    """A text that is still coming; joined once, at the end, because growing a long text piece by piece is slow."""


def _joined(known: Any, value: Any) -> Any:
    if isinstance(value, str):
        if isinstance(known, _Pieces):
            known.append(value)
            return known
        return _Pieces((known, value) if isinstance(known, str) else (value,))
    if isinstance(known, list) and isinstance(value, list) and not isinstance(known, _Pieces):
        known.extend(value)
        return known
    if isinstance(known, dict) and isinstance(value, dict):
        return known | {name: _joined(known.get(name), part) for name, part in value.items() if part is not None}
    return known if value is None else value


def _whole(value: Any) -> Any:
    """`value` with every text that came in pieces as one string."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return value


def _finished(choice: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **_whole(choice["message"])}
    calls = [_whole(call) for call in choice["calls"].values()]
    if calls:
        message["tool_calls"] = calls
        message["content"] = message["content"] or None
    rest = {name: _whole(value) for name, value in choice.items() if name not in ("message", "calls", "index")}
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
    message = first.get("message")
    if isinstance(message, dict):
        facts.preview = first_line(message_text(message.get("content"))) or _calls_line(message.get("tool_calls"))
    usage = reply.get("usage")
    if isinstance(usage, dict):
        facts.prompt_tokens = _count(usage.get("prompt_tokens"))
        facts.completion_tokens = _count(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        facts.cached_tokens = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return facts


def message_text(content: Any) -> str:
    """The text of a message's content, which is a string, null, or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def error_message(reply: dict[str, Any]) -> str:
    """The message of an error in a reply or an event, whichever way it is put."""
    error = reply.get("error", reply)
    message = error.get("message") if isinstance(error, dict) else error
    # Cut behind the filter: half of a credential has no shape any more.
    found = clean(message[:5_000])[:500] if isinstance(message, str) else ""
    return found or "the model server reports an error"


def _calls_line(calls: Any) -> str:
    shown = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            shown.append(f"{function.get('name')}({function.get('arguments')})")
    return first_line(" ".join(" ".join(shown).split()))[:PREVIEW_CHARACTERS]


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
