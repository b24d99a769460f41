"""A request of an OpenAI responses client, read into the hub."""

from __future__ import annotations

from typing import Any

from reef.errors import InvalidInput
from reef.gateway.lenient import dump
from reef.gateway.translate import media, seals, tools
from reef.gateway.translate.fields import RESPONSES_IN
from reef.gateway.translate.hub import CannotCarry, Conversation, Json, call, entries, text_of, text_part
from reef.gateway.translate.request_from_messages import Read, assistant

_TEXT_PARTS = ("input_text", "output_text", "text")
_MEDIA_PARTS = ("input_image", "input_file", "input_audio")
_OF_REASONING = ("effort", "summary", "generate_summary")
_STORED_ITEM = "it names an item stored at the vendor; send the item itself"


def read(body: Json) -> Read:
    """Raises InvalidInput for what cannot be carried or is not of this dialect."""
    hub, unknown = RESPONSES_IN.carry(body)
    reader = _Items()
    if body.get("instructions"):
        reader.say("system", [text_part(text_of(body["instructions"], "instructions"))])
    given = body.get("input")
    if isinstance(given, str):
        reader.say("user", [text_part(given)])
    else:
        for index, item in enumerate(entries(given, "input")):
            reader.take(item, f"input[{index}]")
    hub["messages"] = reader.messages()
    left: list[str] = []
    if body.get("tools"):
        hub["tools"], left = tools.functions_of_responses(body["tools"])
    if body.get("tool_choice") is not None:
        hub["tool_choice"] = tools.choice_of_responses(body["tool_choice"])
    _output(body, hub, unknown)
    return Read(hub, left, unknown)


def _output(body: Json, hub: Json, unknown: list[str]) -> None:
    """The effort of reasoning and the form of the answer."""
    reasoning, text, include = body.get("reasoning"), body.get("text"), body.get("include")
    if isinstance(include, list):
        unknown += [f"include[{name}]" for name in include if name != "reasoning.encrypted_content"]
    if isinstance(reasoning, dict):
        unknown += [
            f"reasoning.{name}" for name, value in reasoning.items() if value is not None and name not in _OF_REASONING
        ]
        if reasoning.get("effort") is not None:
            hub["reasoning_effort"] = reasoning["effort"]
    if not isinstance(text, dict):
        return
    unknown += [f"text.{name}" for name in text if name not in ("format", "verbosity")]
    if text.get("verbosity") is not None:
        hub["verbosity"] = text["verbosity"]
    form = text.get("format")
    if not isinstance(form, dict) or form.get("type", "text") == "text":
        return
    if form["type"] == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type" and value is not None}
        hub["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form["type"] == "json_object":
        hub["response_format"] = {"type": "json_object"}
    else:
        raise CannotCarry("text.format.type", f"{form['type']!r} is not known")


class _Items:
    """Joins the assistant's items (reasoning, message, calls) into one message until somebody else speaks."""

    def __init__(self) -> None:
        self._conversation = Conversation()
        self._texts: list[Json] = []
        self._calls: list[Json] = []
        self._reasoning: list[Json] = []

    def messages(self) -> list[Json]:
        self._close()
        return self._conversation.messages()

    def say(self, role: str, content: list[Json]) -> None:
        self._close()
        self._conversation.add({"role": role, "content": content})

    def take(self, item: Json, place: str) -> None:
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind == "message":
            self._message(item, place)
        elif kind == "reasoning":
            if self._calls:
                # A new thought after calls is a new answer, even where the results were left for later.
                self._close()
            self._reasoning.append(seals.from_item(item))
        elif kind in ("function_call", "custom_tool_call"):
            self._call(item, kind, place)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._close()
            call_id = text_of(item.get("call_id"), f"{place}.call_id")
            parts = _parts(item.get("output"), f"{place}.output")
            self._conversation.add_result(call_id, parts, f"{place}.call_id")
        elif kind == "item_reference":
            raise CannotCarry(place, _STORED_ITEM)
        else:
            raise CannotCarry(f"{place}.type", f"{kind!r} items have no counterpart there")

    def _message(self, item: Json, place: str) -> None:
        role = item.get("role")
        if role == "assistant":
            if self._calls:
                self._close()
            self._texts += _texts(item.get("content"), f"{place}.content")
            if not self._texts:
                self._texts = [text_part("")]
        elif role in ("user", "system", "developer"):
            self.say(role, _parts(item.get("content"), f"{place}.content"))
        else:
            raise InvalidInput(f"`{place}.role` is {role!r}, not user, assistant, system or developer")

    def _call(self, item: Json, kind: str, place: str) -> None:
        if kind == "function_call":
            arguments = text_of(item.get("arguments"), f"{place}.arguments")
        else:
            arguments = dump({"input": text_of(item.get("input"), f"{place}.input")}).decode()
        call_id = text_of(item.get("call_id") or item.get("id"), f"{place}.call_id")
        self._calls.append(call(call_id, text_of(item.get("name"), f"{place}.name"), arguments))

    def _close(self) -> None:
        if self._texts or self._calls or self._reasoning:
            texts = [part for part in self._texts if part["text"]]
            self._conversation.add(assistant(texts, self._calls, self._reasoning))
        self._texts, self._calls, self._reasoning = [], [], []


def _texts(content: Any, place: str) -> list[Json]:
    """What an assistant said: text, and refusals as the text that they are."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    found: list[Json] = []
    for index, part in enumerate(entries(content, place)):
        kind, where = part.get("type"), f"{place}[{index}]"
        if kind == "refusal":
            found.append(text_part(text_of(part.get("refusal"), f"{where}.refusal")))
        elif kind in _TEXT_PARTS:
            found.append(text_part(text_of(part.get("text"), f"{where}.text")))
        else:
            raise CannotCarry(f"{where}.type", f"{kind!r} content has no counterpart there")
    return found


def _parts(content: Any, place: str) -> list[Json]:
    """What a user, a system prompt or a tool said."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    found: list[Json] = []
    for index, part in enumerate(entries(content, place)):
        kind, where = part.get("type"), f"{place}[{index}]"
        if kind in _TEXT_PARTS:
            found.append(text_part(text_of(part.get("text"), f"{where}.text")))
        elif kind in _MEDIA_PARTS:
            found.append(media.from_item_part(part, where))
        else:
            raise CannotCarry(f"{where}.type", f"{kind!r} content has no counterpart there")
    return found
