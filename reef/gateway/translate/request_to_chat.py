"""The hub, as read from a messages or responses client, written for a chat upstream.

Written as the plainest server takes it: one system message and only in front, text as a string, tool results as text.

- System and developer messages in front are joined into one. A later one is said by the user, between
  `<system-reminder>` tags, because many templates refuse a system message anywhere else.
- Images and files of tool results follow all results of the turn in a user message that says which call they are of,
  because the role `tool` carries text only.
- What the user's side says in a row is one message, because many templates demand that user and assistant alternate.
- Reasoning goes into the field in which the server gave it.
"""

from __future__ import annotations

from reef.gateway.translate import seals
from reef.gateway.translate.compat import Compat
from reef.gateway.translate.fields import CHAT_OUT
from reef.gateway.translate.hub import CannotCarry, Json, fitting_id, joined, text_part
from reef.gateway.translate.tools import settled

_ID_LIMIT = 40
"""The most characters of a tool call's id that OpenAI's own servers take."""


def reminder(text: str) -> str:
    """A system message that has to stand in a user's turn."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


def write(hub: Json, compat: Compat) -> Json:
    """The body for the upstream. Raises CannotCarry."""
    body, _ = CHAT_OUT.carry(hub)
    if not body.get("stop"):
        body.pop("stop", None)
    body["messages"] = _messages(hub["messages"])
    if hub.get("max_tokens") is not None:
        body[compat.max_tokens] = hub["max_tokens"]
    tools, choice = settled(hub)
    if tools:
        body["tools"] = tools
        if choice is not None:
            body["tool_choice"] = choice
        if hub.get("parallel_tool_calls") is not None:
            body["parallel_tool_calls"] = hub["parallel_tool_calls"]
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}
    return body


def _messages(messages: list[Json]) -> list[Json]:
    front = 0
    while front < len(messages) and messages[front]["role"] in ("system", "developer"):
        front += 1
    system = [part for message in messages[:front] for part in _only_text(message)]
    found: list[Json] = [{"role": "system", "content": joined(system)}] if system else []
    spoken: list[Json] | None = None
    for message in messages[front:]:
        role = message["role"]
        if role == "assistant":
            if spoken is not None:
                found.append({"role": "user", "content": _content(spoken)})
                spoken = None
            found.append(_assistant(message))
            continue
        if role == "tool":
            result, parts = _result(message)
            found.append(result)
        elif role == "user":
            parts = message["content"]
        else:
            parts = [text_part(reminder(joined(_only_text(message))))] if message["content"] else []
        if parts or role == "user":
            spoken = [*(spoken or ()), *parts]
    return found if spoken is None else [*found, {"role": "user", "content": _content(spoken)}]


def _only_text(message: Json) -> list[Json]:
    for part in message["content"]:
        if part["type"] != "text":
            raise CannotCarry(part["type"], f"a {message['role']} message holds text only")
    return list(message["content"])


def _content(parts: list[Json]) -> str | list[Json]:
    """Text alone as one string; with images or files, the list."""
    if all(part["type"] == "text" for part in parts):
        return joined(parts)
    return [_carried(part) for part in parts]


def _carried(part: Json) -> Json:
    if part["type"] == "file" and "file_url" in part["file"]:
        raise CannotCarry("file_url", "chat completions take the file itself, not its address")
    return part


def _result(message: Json) -> tuple[Json, list[Json]]:
    """A tool message of text alone, and the parts that have to follow in a user message."""
    call_id = fitting_id(message["tool_call_id"], _ID_LIMIT)
    texts = [part for part in message["content"] if part["type"] == "text"]
    rest = [_carried(part) for part in message["content"] if part["type"] != "text"]
    if rest:
        texts = texts or [text_part("(the images and files of this result follow)")]
        rest.insert(0, text_part(f"From the result of the tool call {call_id}:"))
    return {"role": "tool", "tool_call_id": call_id, "content": joined(texts)}, rest


def _assistant(message: Json) -> Json:
    calls = message.get("tool_calls") or []
    found: Json = {"role": "assistant", "content": joined(message["content"]) or (None if calls else "")}
    reasoning = message.get("reasoning") or []
    thought = "\n\n".join(block["text"] for block in reasoning if block["text"])
    if thought:
        found[seals.chat_field(reasoning)] = thought
    if calls:
        found["tool_calls"] = [{**one, "id": fitting_id(one["id"], _ID_LIMIT)} for one in calls]
    return found
