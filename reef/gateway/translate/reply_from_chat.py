"""What a chat upstream says."""

from __future__ import annotations

from typing import Any

from reef.gateway.dialect import BROKEN_OFF, error_message
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
    Said,
    Usage,
    Word,
    count,
    place,
)

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""What servers say of the end, in the hub's words; anything else is `stop`."""
_BROKEN = ("abort", "error")
"""What they say where the model did not come to an end."""


class ChatReader:
    """Reads one reply. Only the first choice: no client of another dialect can ask for more."""

    def __init__(self) -> None:
        self._finish: str | None = None
        self._stop_sequence: str | None = None
        self._usage: Usage | None = None
        self._begun = False
        self._given_up = False
        self._field = ""
        self._last_index: Any = None
        self._ids: dict[Any, str] = {}
        self._turns: dict[Any, int] = {}

    def whole(self, reply: Json) -> list[Word]:
        if reply.get("error"):
            return [failure_of(reply)]
        choices = reply.get("choices")
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        if first is None or not isinstance(first.get("message"), dict):
            return [Failure("the model server's reply holds no answer")]
        words: list[Word] = [Begin(_model(reply))]
        words += self._delta(_with_indexes(first["message"]))
        self._note(first)
        self._usage = usage_of(reply.get("usage"))
        self._finish = self._finish or "stop"
        return words + self.done()

    def take(self, event: Json, name: str = "") -> list[Word]:
        if event.get("error") or name == "error":
            self._given_up = True
            return [failure_of(event) if event.get("error") else Failure(error_message(event))]
        words: list[Word] = []
        if not self._begun:
            self._begun = True
            words.append(Begin(_model(event)))
        self._usage = usage_of(event.get("usage")) or self._usage
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                if isinstance(choice.get("delta"), dict):
                    words += self._delta(choice["delta"])
                self._note(choice)
        return words

    def done(self) -> list[Word]:
        if self._finish is None or self._given_up:
            return []
        self._given_up = True
        if self._finish in _BROKEN:
            return [Failure(BROKEN_OFF)]
        return [End(_FINISH.get(self._finish, "stop"), self._usage, self._stop_sequence)]

    def _note(self, choice: Json) -> None:
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
        # Some servers name the matched stop sequence here; a number is a token of the model's own.
        if isinstance(choice.get("stop_reason"), str) and choice["stop_reason"]:
            self._stop_sequence = choice["stop_reason"]

    def _delta(self, delta: Json) -> list[Word]:
        words: list[Word] = []
        thought = self._reasoning(delta)
        if thought:
            words.append(Said(thought, "reasoning", seals.seal(seals.FIELD, self._field)))
        text = _content(delta.get("content"))
        if text:
            words.append(Said(text))
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            words.append(Said(delta["refusal"], "refusal"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                words += self._call(call)
        return words

    def _reasoning(self, delta: Json) -> str:
        """Servers that say it in two fields say the same in both: the one that came first counts."""
        for name in (self._field,) if self._field else seals.CHAT_FIELDS:
            text = delta.get(name)
            if isinstance(text, str) and text:
                self._field = name
                return text
        return ""

    def _call(self, call: Json) -> list[Word]:
        """A piece of a tool call: by its index, else by its id, else of the last one.

        Some servers give every call the index 0: another id that comes with a name is another call.
        """
        call_id = call["id"] if isinstance(call.get("id"), str) else ""
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        name = function["name"] if isinstance(function.get("name"), str) else ""
        index = place(call.get("index"))
        index = (call_id or self._last_index) if index is None else index
        known = self._ids.get(index)
        if known is None or (call_id and name and known and call_id != known):
            self._turns[index] = self._turns.get(index, 0) + 1
        self._ids[index] = call_id or known or ""
        self._last_index = index
        key = (index, self._turns[index])
        words: list[Word] = [Called(key, call_id, name)]
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dump(arguments).decode()
        if isinstance(arguments, str) and arguments:
            words.append(Arguments(key, arguments))
        return words


def _content(content: Any) -> str:
    """The text of a message's content, which is a string, null, or (of some servers) a list of parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _with_indexes(message: Json) -> Json:
    """A whole message with its tool calls counted, as a stream has them."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    counted = [{**call, "index": index} for index, call in enumerate(calls) if isinstance(call, dict)]
    return {**message, "tool_calls": counted}


def _model(reply: Json) -> str | None:
    model = reply.get("model")
    return model if isinstance(model, str) and model else None


def usage_of(usage: Any) -> Usage | None:
    """The usage of a chat reply; None without one."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    prompt = prompt if isinstance(prompt, dict) else {}
    completion = completion if isinstance(completion, dict) else {}
    return Usage(
        input=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cached=count(prompt.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),
        written=count(prompt.get("cache_write_tokens")),
        reasoning=count(completion.get("reasoning_tokens")),
    )
