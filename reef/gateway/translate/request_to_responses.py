"""The hub written for an OpenAI responses upstream: a message, a tool call and a result are an item each."""

from __future__ import annotations

from reef.gateway.translate import media, seals
from reef.gateway.translate.fields import RESPONSES_OUT
from reef.gateway.translate.hub import CannotCarry, Json, fitting_id, joined
from reef.gateway.translate.tools import choice_for_responses, settled, tools_for_responses

_ID_LIMIT = 64


def write(hub: Json) -> tuple[Json, list[str]]:
    """The body for the upstream, and the fields that are left out. Raises CannotCarry."""
    body, unknown = RESPONSES_OUT.carry(hub)
    body["store"] = hub.get("store") is True
    limit = hub.get("max_completion_tokens")
    limit = hub.get("max_tokens") if limit is None else limit
    if limit is not None:
        body["max_output_tokens"] = limit
    body["input"] = [item for index, message in enumerate(hub["messages"]) for item in _items(message, index)]
    settled(hub)
    if hub.get("tools"):
        body["tools"] = tools_for_responses(hub["tools"])
        if hub.get("tool_choice") is not None:
            body["tool_choice"] = choice_for_responses(hub["tool_choice"])
        if hub.get("parallel_tool_calls") is not None:
            body["parallel_tool_calls"] = hub["parallel_tool_calls"]
    if hub.get("reasoning_effort") is not None:
        body["reasoning"] = {"effort": hub["reasoning_effort"]}
        body["include"] = ["reasoning.encrypted_content"]
    text = _text(hub)
    if text:
        body["text"] = text
    return body, unknown


def _text(hub: Json) -> Json:
    """The form of the answer."""
    text: Json = {} if hub.get("verbosity") is None else {"verbosity": hub["verbosity"]}
    form = hub.get("response_format")
    if isinstance(form, dict):
        inside = form.get("json_schema")
        text["format"] = {"type": "json_schema", **inside} if isinstance(inside, dict) else form
    return text


def _items(message: Json, index: int) -> list[Json]:
    role = message["role"]
    if role == "assistant":
        return _assistant(message)
    content = [media.to_item_part(part) for part in message["content"]]
    plain = all(part["type"] == "text" for part in message["content"])
    said = joined(message["content"]) if plain and len(content) < 2 else content
    if role == "tool":
        call_id = fitting_id(message["tool_call_id"], _ID_LIMIT)
        return [{"type": "function_call_output", "call_id": call_id, "output": said}]
    if role != "user" and not plain:
        raise CannotCarry(f"messages[{index}].content", f"a {role} message holds text only")
    return [{"type": "message", "role": role, "content": said}]


def _assistant(message: Json) -> list[Json]:
    found: list[Json] = []
    for thought in message.get("reasoning") or ():
        item = seals.to_vendor_item(thought["text"], thought["seal"])
        if item is not None:
            found.append(item)
    if message["content"]:
        content = [{"type": "output_text", "text": part["text"]} for part in message["content"]]
        found.append({"type": "message", "role": "assistant", "content": content})
    for one in message.get("tool_calls") or ():
        inside = one["function"]
        found.append(
            {
                "type": "function_call",
                "call_id": fitting_id(one["id"], _ID_LIMIT),
                "name": inside["name"],
                "arguments": inside["arguments"],
            }
        )
    return found
