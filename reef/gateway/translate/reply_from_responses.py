"""What an OpenAI responses upstream says.

Some servers give a text or the arguments of a call only with the event that closes them, or only with the last one of
all. Whatever an event adds to what has been told already is told, so everything is told once.
"""

from __future__ import annotations

from typing import Any

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

_FINISH: dict[str, Finish] = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a reply is incomplete, in the hub's words; anything else is `length`."""
_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "content",
}
_WHOLE_PARTS = {"output_text": ("text", "text"), "refusal": ("refusal", "refusal")}
"""A part of a message: which kind of text it is, and under which name it stands."""


class ResponsesReader:
    """Reads one reply."""

    def __init__(self) -> None:
        self._told: dict[tuple[Any, str, Any], list[str]] = {}
        self._called: set[Any] = set()
        self._closed: set[Any] = set()
        self._reasoned: dict[Any, str] = {}

    def whole(self, reply: Json) -> list[Word]:
        return [_begin(reply), *self._last(reply)]

    def take(self, event: Json, name: str = "") -> list[Word]:
        kind = str(event.get("type") or name)
        index = place(event.get("output_index"))
        if kind == "error" or (event.get("error") and "response" not in event):
            return [failure_of(event if event.get("error") else {"error": event})]
        if kind == "response.created" and isinstance(event.get("response"), dict):
            return [_begin(event["response"])]
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = event.get("response")
            return self._last(response if isinstance(response, dict) else {}, kind.rpartition(".")[2])
        if kind in _DELTAS:
            inside = event.get("summary_index") if _DELTAS[kind] == "summary" else event.get("content_index")
            return self._more(index, _DELTAS[kind], place(inside), event.get("delta"))
        if kind == "response.function_call_arguments.delta" and isinstance(event.get("delta"), str):
            self._told.setdefault((index, "arguments", 0), []).append(event["delta"])
            return [Arguments(index, event["delta"])]
        item = event.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict):
            return self._added(index, item)
        if kind == "response.output_item.done" and isinstance(item, dict):
            return self._item(index, item)
        return []

    def done(self) -> list[Word]:
        return []

    def _last(self, response: Json, status: str = "") -> list[Word]:
        """The whole response: what has not been told of it, and how it ended."""
        status = status or str(response.get("status") or "completed")
        if status in ("failed", "cancelled") or response.get("error"):
            error = response.get("error")
            return [failure_of(response) if error else Failure(f"the model server says that the response is {status}")]
        output = response.get("output")
        if not isinstance(output, list) and not self._closed:
            return [Failure("the model server's reply holds no answer")]
        words: list[Word] = []
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                words += self._item(index, item)
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        finish: Finish = "stop"
        if status == "incomplete":
            finish = _FINISH.get(str(reason), "length")
        return [*words, End(finish, usage_of(response.get("usage")))]

    def _added(self, index: Any, item: Json) -> list[Word]:
        if item.get("type") != "function_call":
            return [Pause()] if item.get("type") == "reasoning" else []
        self._called.add(index)
        return [Called(index, str(item.get("call_id") or item.get("id") or ""), str(item.get("name") or ""))]

    def _item(self, index: Any, item: Json) -> list[Word]:
        """A whole item, once: what has not been told of it."""
        kind = item.get("type")
        named = place(item.get("call_id")) or place(item.get("id"))
        # Some servers name no item, others all of a reply the same.
        name = (str(kind), named) if named else None
        if (index if name is None else name) in self._closed:
            return []
        if index in self._closed:
            # The last event counts its items otherwise than the ones before it did.
            index = name
        self._closed |= {index} if name is None else {index, name}
        if kind == "message":
            return self._message(index, item)
        if kind == "reasoning":
            return self._reasoning(index, item)
        if kind != "function_call":
            return []
        words = [] if index in self._called else self._added(index, item)
        arguments = item.get("arguments")
        rest = self._rest((index, "arguments", 0), arguments if isinstance(arguments, str) else "")
        return [*words, Arguments(index, rest)] if rest else words

    def _message(self, index: Any, item: Json) -> list[Word]:
        words: list[Word] = []
        parts = item.get("content")
        for inside, part in enumerate(parts if isinstance(parts, list) else ()):
            kind, name = _WHOLE_PARTS.get(str(part.get("type")) if isinstance(part, dict) else "", ("", ""))
            if kind and isinstance(part.get(name), str):
                words += self._said(kind, self._rest((index, kind, inside), part[name]))
        return words

    def _reasoning(self, index: Any, item: Json) -> list[Word]:
        words: list[Word] = []
        for kind in ("summary", "content"):
            parts = item.get(kind)
            for inside, part in enumerate(parts if isinstance(parts, list) else ()):
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    rest = self._rest((index, kind, inside), part["text"])
                    words += self._more(index, kind, inside, rest, told=True)
        found = seals.from_item(item)
        if item.get("encrypted_content") or self._reasoned.get(index):
            words.append(Said("", "reasoning", found["seal"]))
        return words

    def _more(self, index: Any, kind: str, inside: Any, text: Any, told: bool = False) -> list[Word]:
        """A piece of text; of reasoning, a summary and the full text are not both told."""
        if not isinstance(text, str) or not text:
            return []
        key = (index, kind, inside)
        known = self._told.setdefault(key, [])
        if not told:
            known.append(text)
        if kind not in ("summary", "content"):
            return self._said(kind, text)
        if self._reasoned.setdefault(index, kind) != kind:
            return []
        first = inside and known == [text]
        return [Said("\n\n" + text if first else text, "reasoning")]

    def _said(self, kind: str, text: str) -> list[Word]:
        if not text:
            return []
        return [Said(text) if kind == "text" else Said(text, "refusal")]

    def _rest(self, key: tuple[Any, str, Any], text: str) -> str:
        """What `text` adds to what has been told under `key`."""
        told = "".join(self._told.get(key, ()))
        if not text.startswith(told):
            return ""
        self._told[key] = [text]
        return text[len(told) :]


def _begin(response: Json) -> Begin:
    model = response.get("model")
    return Begin(model if isinstance(model, str) and model else None)


def usage_of(usage: Any) -> Usage | None:
    """The usage of a responses reply; None without one."""
    if not isinstance(usage, dict):
        return None
    given, made = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    given = given if isinstance(given, dict) else {}
    made = made if isinstance(made, dict) else {}
    return Usage(
        input=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cached=count(given.get("cached_tokens")),
        written=count(given.get("cache_write_tokens")),
        reasoning=count(made.get("reasoning_tokens")),
    )
