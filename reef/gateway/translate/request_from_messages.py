"""A request of an Anthropic messages client, read into the hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reef.errors import InvalidInput
from reef.gateway.translate import media, seals, tools
from reef.gateway.translate.fields import MESSAGES_IN
from reef.gateway.translate.hub import CannotCarry, Conversation, Json, arguments_of, call, entries, text_of, text_part

_BILLING = "x-anthropic-billing-header"
_EFFORT_OF_BUDGET = ((4096, "low"), (16384, "medium"))
"""Thinking budgets in tokens up to which an effort goes; above, it is `high`."""


@dataclass(frozen=True, slots=True)
class Read:
    """A client's request in the hub."""

    hub: Json
    tools_left: list[str]
    """Tools that are not carried."""
    fields_left: list[str]
    """Fields that are not carried either."""


def read(body: Json) -> Read:
    """Raises InvalidInput for what cannot be carried or is not of this dialect."""
    hub, unknown = MESSAGES_IN.carry(body)
    conversation = Conversation()
    system = _system(body.get("system"))
    if system:
        conversation.add({"role": "system", "content": system})
    for index, message in enumerate(entries(body.get("messages"), "messages")):
        _add(conversation, message, f"messages[{index}]")
    hub["messages"] = conversation.messages()
    left: list[str] = []
    if body.get("tools"):
        hub["tools"], left = tools.functions_of_messages(body["tools"])
    if body.get("tool_choice") is not None:
        hub["tool_choice"], parallel = tools.choice_of_messages(body["tool_choice"])
        if parallel is not None:
            hub["parallel_tool_calls"] = parallel
    _output(body, hub, unknown)
    return Read(hub, left, unknown)


def _output(body: Json, hub: Json, unknown: list[str]) -> None:
    """The effort of reasoning and the form of the answer."""
    config = body.get("output_config")
    config = config if isinstance(config, dict) else {}
    unknown += [f"output_config.{name}" for name in config if name not in ("effort", "format")]
    effort = config.get("effort")
    thinking = body.get("thinking")
    if effort is None and isinstance(thinking, dict) and isinstance(thinking.get("budget_tokens"), int):
        budget = thinking["budget_tokens"]
        effort = next((word for most, word in _EFFORT_OF_BUDGET if budget <= most), "high")
    if effort is not None:
        hub["reasoning_effort"] = effort
    form = config.get("format") or body.get("output_format")
    if isinstance(form, dict):
        if form.get("type") != "json_schema":
            raise CannotCarry("output_config.format.type", f"{form.get('type')!r} is not known")
        schema = {"name": "answer", "strict": True, "schema": form.get("schema")}
        hub["response_format"] = {"type": "json_schema", "json_schema": schema}


def _system(system: Any) -> list[Json]:
    if system is None:
        return []
    return [part for part in _texts(system, "system") if not part["text"].startswith(_BILLING)]


def _texts(content: Any, place: str) -> list[Json]:
    """Content that may hold text only."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    found: list[Json] = []
    for index, block in enumerate(entries(content, place)):
        if block.get("type") != "text":
            raise CannotCarry(f"{place}[{index}].type", f"{block.get('type')!r} may not stand here")
        found.append(text_part(text_of(block.get("text"), f"{place}[{index}].text")))
    return found


def _add(conversation: Conversation, message: Json, place: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "user":
        _add_user(conversation, content, f"{place}.content")
    elif role == "assistant":
        _add_assistant(conversation, content, f"{place}.content")
    elif role in ("system", "developer"):
        conversation.add({"role": role, "content": _texts(content, f"{place}.content")})
    else:
        raise InvalidInput(f"`{place}.role` is {role!r}, not user, assistant or system")


def _add_user(conversation: Conversation, content: Any, place: str) -> None:
    """Results first, whatever stands around them after them, in one user message."""
    if isinstance(content, str):
        conversation.add({"role": "user", "content": [text_part(content)]})
        return
    rest: list[Json] = []
    blocks = entries(content, place)
    for index, block in enumerate(blocks):
        where = f"{place}[{index}]"
        if block.get("type") == "tool_result":
            call_id = text_of(block.get("tool_use_id"), f"{where}.tool_use_id")
            parts = _parts(block.get("content"), f"{where}.content")
            conversation.add_result(call_id, parts, f"{where}.tool_use_id", failed=block.get("is_error") is True)
        else:
            rest += _part(block, where)
    if rest or not blocks:
        conversation.add({"role": "user", "content": rest})


def _parts(content: Any, place: str) -> list[Json]:
    """Content of a tool's result: null, a text, or blocks."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_part(content)]
    found: list[Json] = []
    for index, block in enumerate(entries(content, place)):
        where = f"{place}[{index}]"
        if block.get("type") == "tool_reference":
            # The client offers the tool itself from now on, so the model only has to be told that it may call it.
            name = text_of(block.get("tool_name"), f"{where}.tool_name")
            found.append(text_part(f"The tool {name} can be called now."))
        else:
            found += _part(block, where)
    return found


def _part(block: Json, place: str) -> list[Json]:
    kind = block.get("type")
    if kind == "text":
        return [text_part(text_of(block.get("text"), f"{place}.text"))]
    if kind in ("image", "document"):
        return media.from_block(block, place)
    raise CannotCarry(f"{place}.type", f"{kind!r} blocks have no counterpart there")


def _add_assistant(conversation: Conversation, content: Any, place: str) -> None:
    texts: list[Json] = []
    calls: list[Json] = []
    reasoning: list[Json] = []
    if isinstance(content, str):
        texts = [text_part(content)] if content else []
        content = []
    for index, block in enumerate(entries(content, place)):
        kind, where = block.get("type"), f"{place}[{index}]"
        if kind == "text":
            texts.append(text_part(text_of(block.get("text"), f"{where}.text")))
        elif kind in ("thinking", "redacted_thinking"):
            reasoning.append(seals.from_block(block))
        elif kind == "tool_use":
            call_id = text_of(block.get("id"), f"{where}.id")
            calls.append(call(call_id, text_of(block.get("name"), f"{where}.name"), arguments_of(block.get("input"))))
        else:
            raise CannotCarry(f"{where}.type", f"{kind!r} blocks have no counterpart there")
    conversation.add(assistant(texts, calls, reasoning))


def assistant(texts: list[Json], calls: list[Json], reasoning: list[Json]) -> Json:
    """One message of the assistant in the hub."""
    message: Json = {"role": "assistant", "content": texts}
    if calls:
        message["tool_calls"] = calls
    if reasoning:
        message["reasoning"] = reasoning
    return message
