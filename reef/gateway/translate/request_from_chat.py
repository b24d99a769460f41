"""A request of an OpenAI chat client, read into the hub: its fields stay, its messages are checked and put in order.

Which of its fields can be carried is for the table of the upstream's dialect to say.
"""

from __future__ import annotations

from typing import Any

from reef.errors import InvalidInput
from reef.gateway.lenient import dump
from reef.gateway.translate import media, seals, tools
from reef.gateway.translate.hub import CannotCarry, Conversation, Json, call, entries, text_of, text_part
from reef.gateway.translate.request_from_messages import Read, assistant

_MEDIA_PARTS = ("image_url", "file", "input_audio")


def read(body: Json) -> Read:
    """Raises InvalidInput for what cannot be carried or is not of this dialect."""
    hub = dict(body)
    conversation = Conversation()
    for index, message in enumerate(entries(body.get("messages"), "messages")):
        _add(conversation, message, f"messages[{index}]")
    hub["messages"] = conversation.messages()
    left: list[str] = []
    if body.get("tools"):
        hub["tools"], left = tools.functions_of_chat(body["tools"])
    if body.get("tool_choice") is not None:
        hub["tool_choice"] = tools.choice_of_chat(body["tool_choice"])
    return Read(hub, left, [])


def _add(conversation: Conversation, message: Json, place: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        _add_assistant(conversation, message, place)
    elif role == "tool":
        call_id = text_of(message.get("tool_call_id"), f"{place}.tool_call_id")
        conversation.add_result(call_id, _parts(content, f"{place}.content"), f"{place}.tool_call_id")
    elif role in ("system", "developer", "user"):
        conversation.add({"role": role, "content": _parts(content, f"{place}.content")})
    elif role == "function":
        raise CannotCarry(f"{place}.role", "it is the old form of role tool; send tool_calls and role tool")
    else:
        raise InvalidInput(f"`{place}.role` is {role!r}, not system, developer, user, assistant or tool")


def _add_assistant(conversation: Conversation, message: Json, place: str) -> None:
    if message.get("function_call") is not None:
        raise CannotCarry(f"{place}.function_call", "it is the old form of `tool_calls`")
    if message.get("audio") is not None:
        raise CannotCarry(f"{place}.audio", "it names a recording stored at the vendor")
    texts = _texts(message.get("content"), f"{place}.content")
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        texts.append(text_part(message["refusal"]))
    calls = [
        _call(one, f"{place}.tool_calls[{index}]")
        for index, one in enumerate(entries(message.get("tool_calls") or [], f"{place}.tool_calls"))
    ]
    conversation.add(assistant(texts, calls, _reasoning(message, place)))


def _reasoning(message: Json, place: str) -> list[Json]:
    """Sealed reasoning where the client kept it, else the bare text."""
    if message.get("reasoning_details"):
        found = seals.from_details(message["reasoning_details"], f"{place}.reasoning_details")
        if found:
            return found
    for name in seals.CHAT_FIELDS:
        text = message.get(name)
        if isinstance(text, str) and text:
            return [{"text": text, "seal": seals.seal(seals.FIELD, name)}]
    return []


def _call(one: Json, place: str) -> Json:
    call_id = text_of(one.get("id"), f"{place}.id")
    inside = one.get("function")
    if one.get("type", "function") == "function" and isinstance(inside, dict):
        arguments = text_of(inside.get("arguments") or "", f"{place}.function.arguments")
        return call(call_id, text_of(inside.get("name"), f"{place}.function.name"), arguments)
    inside = one.get("custom")
    if one.get("type") == "custom" and isinstance(inside, dict):
        given = text_of(inside.get("input"), f"{place}.custom.input")
        return call(call_id, text_of(inside.get("name"), f"{place}.custom.name"), dump({"input": given}).decode())
    raise CannotCarry(f"{place}.type", f"{one.get('type')!r} calls have no counterpart there")


def _texts(content: Any, place: str) -> list[Json]:
    if content is None or isinstance(content, str):
        return [text_part(content)] if content else []
    found: list[Json] = []
    for index, part in enumerate(entries(content, place)):
        kind, where = part.get("type"), f"{place}[{index}]"
        if kind not in ("text", "refusal"):
            raise CannotCarry(f"{where}.type", f"{kind!r} content has no counterpart there")
        found.append(_text(part, kind, where))
    return found


def _parts(content: Any, place: str) -> list[Json]:
    if content is None or isinstance(content, str):
        return [text_part(content)] if content else []
    found: list[Json] = []
    for index, part in enumerate(entries(content, place)):
        kind, where = part.get("type"), f"{place}[{index}]"
        if kind == "text":
            found.append(_text(part, kind, where))
        elif kind in _MEDIA_PARTS:
            found.append(_marked(media.checked(part, where), part))
        else:
            raise CannotCarry(f"{where}.type", f"{kind!r} content has no counterpart there")
    return found


def _text(part: Json, kind: str, place: str) -> Json:
    return _marked(text_part(text_of(part.get(kind), f"{place}.{kind}")), part)


def _marked(found: Json, part: Json) -> Json:
    """`found` with the mark of a cache that `part` has."""
    return {**found, "cache_control": part["cache_control"]} if part.get("cache_control") else found
