"""Reading a copy of a request: whole when it is small, in windows when it has many megabytes."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from reef.errors import InvalidInput
from reef.gateway import scan
from reef.gateway.dialect import first_line
from reef.gateway.lenient import dump, parse
from reef.gateway.scan import SCAN_ABOVE

MESSAGES_MAX = 50_000
"""A very large request with more messages than this is not searched for its last one."""
_LAST_MESSAGES = 20
"""How many of the last user messages of a very large request are looked at: most may hold tool results only."""
_SMALL = (
    "model",
    "stream",
    "metadata",
    "prompt_cache_key",
    "session_id",
    "previous_response_id",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
)
_PIECE = 1024 * 1024
_CLOSE = re.compile(rb"[ \t\r\n]*\}")
_REMINDER = "<system-reminder>"
_SYSTEM_CHARACTERS = 300


def read_object(body: bytes, conversation: str) -> dict[str, Any]:
    """The request's object; of a very large one the small values and the last user messages of `conversation`.

    Raises InvalidInput when the body is not a JSON object.
    """
    try:
        request = _sketch(body, conversation) if len(body) > SCAN_ABOVE else parse(body)
    except ValueError:
        raise InvalidInput("the request's body is not JSON") from None
    if not isinstance(request, dict):
        raise InvalidInput("the request's body is not a JSON object")
    return request


def with_model(body: bytes, model: str) -> bytes:
    """`body` with a model name put in front; every other byte as it was."""
    start = body.index(b"{") + 1
    more = not _CLOSE.match(body, start)
    # Small pieces and one join: a copy of all at once would keep every other thread waiting.
    rest = [body[place : place + _PIECE] for place in range(start, len(body), _PIECE)]
    return b"".join((body[:start], b'"model":', dump(model), b"," if more else b"", *rest))


def content_text(content: Any) -> str:
    """The text of a message's content, which is a string, null, or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def last_user_line(conversation: Any) -> str:
    """The first line of the last message that the user wrote.

    Messages that an agent makes in the user's name are passed over: tool results, and its own reminders.
    """
    if isinstance(conversation, str):
        return first_line(conversation)
    for message in reversed(conversation) if isinstance(conversation, list) else ():
        if isinstance(message, dict) and message.get("role") == "user":
            written = _written(message.get("content"))
            if written is not None:
                return first_line(content_text(written))
    return ""


def system_text(content: Any) -> str:
    """The beginning of a system prompt, which is a string or a list of parts."""
    return content_text(content)[:_SYSTEM_CHARACTERS]


def first_system_text(messages: Any) -> str:
    """The beginning of the system prompt with which a conversation begins, empty where it begins otherwise."""
    first = messages[0] if isinstance(messages, list) and messages else None
    if isinstance(first, dict) and first.get("role") in ("system", "developer"):
        return system_text(first.get("content"))
    return ""


def listed(value: Any) -> int:
    """How many elements a list has; 0 for what is none."""
    return len(value) if isinstance(value, list) else 0


def small_number(*values: Any) -> int | None:
    """The first of `values` that is a whole number."""
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def _written(content: Any) -> Any:
    """What the user wrote of a message's content; None when every part is an agent's."""
    if not isinstance(content, list) or not content:
        return content or ""
    return [part for part in content if _is_written(part)] or None


def _is_written(part: Any) -> bool:
    if not isinstance(part, dict):
        return True
    text = part.get("text")
    return part.get("type") != "tool_result" and not (isinstance(text, str) and text.startswith(_REMINDER))


def _sketch(body: bytes, conversation: str) -> dict[str, Any]:
    places = scan.members(body)
    request: dict[str, Any] = {name: scan.value(body, places[name]) for name in _SMALL if name in places}
    if "tools" in places and body[places["tools"][0]] == ord("["):
        request["tools"] = [None] * sum(1 for _ in scan.elements(body, places["tools"]))
    if conversation in places:
        span = places[conversation]
        if body[span[0]] == ord("["):
            spans = list(islice(scan.elements(body, span), MESSAGES_MAX))
            request[conversation] = _last_users(body, spans) if len(spans) < MESSAGES_MAX else []
        elif body[span[0]] == ord('"'):
            request[conversation] = scan.beginning(body, span)
    return request


def _last_users(body: bytes, spans: list[scan.Span]) -> list[dict[str, Any]]:
    """The last user messages, in their order, with as much of their text as a preview needs."""
    found: list[dict[str, Any]] = []
    for start, _ in reversed(spans):
        if body[start] != ord("{") or len(found) == _LAST_MESSAGES:
            continue
        message = scan.members(body, start)
        if scan.value(body, message.get("role")) != "user":
            continue
        span = message.get("content")
        content: Any = None
        if span and body[span[0]] == ord('"'):
            content = scan.beginning(body, span)
        elif span and body[span[0]] == ord("["):
            content = [_part(body, part) for part in scan.elements(body, span)]
        found.append({"role": "user", "content": content})
        if _written(content) is not None:
            break
    return found[::-1]


def _part(body: bytes, span: scan.Span) -> Any:
    """A part of a message; of a large one its type and the beginning of its text."""
    small = scan.value(body, span)
    if small is not None or body[span[0]] != ord("{"):
        return small
    places = scan.members(body, span[0])
    found = {"type": scan.value(body, places.get("type"))}
    text = places.get("text")
    return found | {"text": scan.beginning(body, text)} if text and body[text[0]] == ord('"') else found
