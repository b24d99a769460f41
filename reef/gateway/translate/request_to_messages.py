"""The hub written for an Anthropic messages upstream.

- System and developer messages in front become `system`; a later one stands in the user's turn between
  `<system-reminder>` tags, because older models refuse the role in the middle.
- Tool results of a turn are one user turn, results first; what the user says next joins it.
- Texts without any character that shows are left out, and so is a turn that is empty then: the vendor refuses both.
- Reasoning that this vendor has not signed is left out: it refuses the whole request because of it.
"""

from __future__ import annotations

from typing import Any

from reef.gateway.translate import media, seals
from reef.gateway.translate.effort import NO_THINKING
from reef.gateway.translate.fields import MESSAGES_OUT
from reef.gateway.translate.hub import CannotCarry, Json, fitting_id, input_of
from reef.gateway.translate.request_to_chat import reminder
from reef.gateway.translate.tools import choice_for_messages, settled, tools_for_messages

DEFAULT_MAX_TOKENS = 32_000
"""What to ask for when the client names no limit, which is required there: what every current model allows."""
_ID_LIMIT = 64


def write(hub: Json) -> tuple[Json, list[str]]:
    """The body for the upstream, and the fields that are left out. Raises CannotCarry."""
    body, unknown = MESSAGES_OUT.carry(hub)
    limit = hub.get("max_completion_tokens")
    limit = hub.get("max_tokens") if limit is None else limit
    body["max_tokens"] = DEFAULT_MAX_TOKENS if limit is None else limit
    stop = hub.get("stop")
    if stop:
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if hub.get("user"):
        body["metadata"] = {"user_id": hub["user"]}
    system, turns = _turns(hub["messages"])
    if system:
        body["system"] = system
    body["messages"] = turns
    tools, choice = settled(hub)
    if tools:
        body["tools"] = tools_for_messages(tools)
        found = choice_for_messages(choice, hub.get("parallel_tool_calls"))
        if found is not None:
            body["tool_choice"] = found
    _add_output(body, hub)
    return body, unknown


def _add_output(body: Json, hub: Json) -> None:
    """The effort of reasoning and the form of the answer."""
    config: Json = {}
    effort = hub.get("reasoning_effort")
    if effort in NO_THINKING:
        body["thinking"] = {"type": "disabled"}
    elif effort is not None:
        body["thinking"] = {"type": "adaptive"}
        config["effort"] = effort
    form = hub.get("response_format")
    if isinstance(form, dict) and form.get("type") != "text":
        inside = form.get("json_schema")
        if form.get("type") != "json_schema" or not isinstance(inside, dict):
            raise CannotCarry("response_format", "Anthropic messages take a JSON schema only")
        config["format"] = {"type": "json_schema", "schema": inside.get("schema")}
    if config:
        body["output_config"] = config


def _turns(messages: list[Json]) -> tuple[list[Json], list[Json]]:
    """The system blocks and the turns, neighbours of one role joined."""
    system: list[Json] = []
    turns: list[Json] = []
    for index, message in enumerate(messages):
        role, place = message["role"], f"messages[{index}]"
        if role in ("system", "developer"):
            blocks = _blocks(message["content"], place, only_text=True)
            if not turns:
                system += blocks
                continue
            blocks = [{**block, "text": reminder(block["text"])} for block in blocks]
        elif role == "assistant":
            blocks = _assistant(message)
        elif role == "tool":
            blocks = [_result(message, place)]
        else:
            blocks = _blocks(message["content"], place)
        speaker = "assistant" if role == "assistant" else "user"
        if turns and turns[-1]["role"] == speaker:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": speaker, "content": blocks})
    return system, turns


def _blocks(parts: list[Json], place: str, only_text: bool = False) -> list[Json]:
    found: list[Json] = []
    for part in parts:
        if part["type"] == "text":
            if part["text"].strip():
                found.append(part)
        elif only_text:
            raise CannotCarry(f"{place}.{part['type']}", "a system prompt holds text only")
        else:
            mark = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
            found.append(media.to_block(part, place) | mark)
    return found


def _result(message: Json, place: str) -> Json:
    found: Json = {"type": "tool_result", "tool_use_id": fitting_id(message["tool_call_id"], _ID_LIMIT, plain=True)}
    content: Any = _blocks(message["content"], place)
    if len(content) == 1 and set(content[0]) == {"type", "text"}:
        content = content[0]["text"]
    return {**found, "content": content} if content else found


def _assistant(message: Json) -> list[Json]:
    found: list[Json] = []
    for thought in message.get("reasoning") or ():
        block = seals.to_vendor_block(thought["text"], thought["seal"])
        if block is not None:
            found.append(block)
    found += [part for part in message["content"] if part["text"].strip()]
    for one in message.get("tool_calls") or ():
        found.append(
            {
                "type": "tool_use",
                "id": fitting_id(one["id"], _ID_LIMIT, plain=True),
                "name": one["function"]["name"],
                "input": input_of(one["function"]["arguments"]),
            }
        )
    return found
