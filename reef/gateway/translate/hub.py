"""The common form between the dialects: what it looks like, and the small readings that every translation needs.

The hub is an OpenAI chat request, because two of the three dialects are read into it without loss, with these rules:

- `content` of system, developer, user and tool messages is a list of parts, never a string: `text`, `image_url`,
  `input_audio`, `file` (`{"filename", "file_data": data URL}` or `{"filename", "file_url"}`).
- `content` of an assistant message is a list of `text` parts.
- An assistant message may have `reasoning`: a list of `{"text", "seal"}`; `seals.py` says what a seal is.
- A tool message follows its call at once, once, in the order of the calls, and may hold images.

This is only true inside this package: what leaves it is one dialect or another.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from reef.errors import InvalidInput
from reef.gateway.lenient import dump, parse

Json = dict[str, Any]

RAW_ARGUMENTS = "unparsed_arguments"
"""Under this name stand the arguments of a tool call that are no JSON object, where a dialect takes objects only."""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
"""Whole numbers of fewer digits fit into 64 bits."""
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+\Z")


class CannotCarry(InvalidInput):
    """A part of a request that the upstream's dialect has no place for."""

    def __init__(self, field: str, why: str) -> None:
        """`field` as the client wrote it, `why` in a few words."""
        super().__init__(f"`{field}` cannot be carried to this model server: {why}")
        self.field = field
        self.why = why


def exact(body: bytes) -> Any:
    """The value of a JSON text with whole numbers of any length as they are; the fast parser would round long ones.

    Raises ValueError when it is none.
    """
    return json.loads(body) if _LONG_NUMBER in body.translate(_DIGITS) else parse(body)


def entries(value: Any, place: str) -> list[Json]:
    """`value` as a list of objects. Raises InvalidInput that names `place`."""
    if not isinstance(value, list):
        raise InvalidInput(f"`{place}` is not a list")
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise InvalidInput(f"`{place}[{index}]` is not an object")
    return value


def text_of(value: Any, place: str) -> str:
    """`value` as a text. Raises InvalidInput that names `place`."""
    if not isinstance(value, str):
        raise InvalidInput(f"`{place}` is not a text")
    return value


def text_part(text: str) -> Json:
    """A text as a part of a message."""
    return {"type": "text", "text": text}


def joined(parts: list[Json], between: str = "\n\n") -> str:
    """The texts of a list of text parts as one."""
    return between.join(part["text"] for part in parts)


def arguments_of(value: Any) -> str:
    """The input of a tool call, an object, as the JSON text that chat and responses carry."""
    if isinstance(value, dict) and set(value) == {RAW_ARGUMENTS} and isinstance(value[RAW_ARGUMENTS], str):
        return str(value[RAW_ARGUMENTS])
    return dump({} if value is None else value).decode()


def input_of(arguments: str) -> Json:
    """The arguments of a tool call, a JSON text, as the object that messages carry.

    A text that is no JSON object is kept whole under one name: an agent's history holds what its model wrote, and the
    agent's answer to it.
    """
    if not arguments.strip():
        return {}
    value = _object(arguments)
    return {RAW_ARGUMENTS: arguments} if value is None else value


def is_complete(arguments: str) -> bool:
    """Whether a tool call's arguments are a whole JSON object."""
    return arguments.rstrip().endswith("}") and _object(arguments) is not None


def _object(arguments: str) -> Json | None:
    """The object that a text is; None when it is none, or one too deep to read."""
    try:
        value = exact(arguments.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def fitting_id(call_id: str, limit: int, plain: bool = False) -> str:
    """A tool call's id that the upstream accepts: itself where it may be, else always the same short one for it.

    `limit`: the most characters; `plain`: letters, digits, `_` and `-` only.
    """
    if call_id and len(call_id) <= limit and (not plain or _PLAIN_ID.match(call_id)):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def call(call_id: str, name: str, arguments: str) -> Json:
    """One tool call of an assistant message."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Conversation:
    """Collects the messages of a hub in the order in which a client says them, and puts every result after its call."""

    def __init__(self) -> None:
        self._messages: list[Json] = []
        self._results: dict[int, dict[str, Json]] = {}
        self._turn_of: dict[str, int] = {}

    def add(self, message: Json) -> None:
        """A system, developer, user or assistant message."""
        calls = message.get("tool_calls") or ()
        if calls:
            turn = len(self._messages)
            self._results[turn] = {}
            for one in calls:
                self._turn_of[one["id"]] = turn
        self._messages.append(message)

    def add_result(self, call_id: str, content: list[Json], place: str, failed: bool = False) -> None:
        """The result of a tool call. Raises InvalidInput when no call of this id waits for one."""
        turn = self._turn_of.get(call_id)
        if turn is None:
            raise InvalidInput(f"`{place}` names the tool call {call_id!r}, and no such call comes before it")
        results = self._results[turn]
        if call_id in results:
            raise InvalidInput(f"`{place}` is a second result for the tool call {call_id!r}")
        if failed and not any(part["type"] != "text" or part["text"] for part in content):
            content = [text_part("error")]
        results[call_id] = {"role": "tool", "tool_call_id": call_id, "content": content}

    def messages(self) -> list[Json]:
        """Every message in order; the results of a turn's calls follow it at once, in the order of the calls."""
        found: list[Json] = []
        for turn, message in enumerate(self._messages):
            found.append(message)
            results = self._results.get(turn)
            if results:
                found += [results[one["id"]] for one in message["tool_calls"] if one["id"] in results]
        return found
