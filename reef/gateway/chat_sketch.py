"""The few values of a very large chat body that its facts need, found without parsing it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from reef.gateway import scan

MESSAGES_MAX = 50_000
"""A very large request with more messages than this is not searched for its last one."""
_REQUEST = ("model", "stream", "metadata", "prompt_cache_key", "session_id")
_REPLY = ("error", "usage")


def request_sketch(body: bytes) -> dict[str, Any]:
    """The top level of a request: small values, the number of tools, the last user message. Raises ValueError."""
    places = scan.members(body)
    request = _values(body, places, _REQUEST)
    if "tools" in places and body[places["tools"][0]] == ord("["):
        request["tools"] = [None] * sum(1 for _ in scan.elements(body, places["tools"]))
    if "messages" in places and body[places["messages"][0]] == ord("["):
        spans = list(islice(scan.elements(body, places["messages"]), MESSAGES_MAX))
        request["messages"] = _last_user(body, spans) if len(spans) < MESSAGES_MAX else []
    return request


def reply_sketch(body: bytes) -> dict[str, Any]:
    """The top level of a reply: its error, its usage, and its first choice with the beginning of its text.

    Raises ValueError.
    """
    places = scan.members(body)
    reply = _values(body, places, _REPLY)
    if "choices" in places and body[places["choices"][0]] == ord("["):
        for start, _ in islice(scan.elements(body, places["choices"]), 1):
            reply["choices"] = [_choice(body, start)]
    return reply


def _choice(body: bytes, start: int) -> dict[str, Any]:
    if body[start] != ord("{"):
        return {}
    places = scan.members(body, start)
    choice = _values(body, places, ("finish_reason",))
    if "message" in places and body[places["message"][0]] == ord("{"):
        inside = scan.members(body, places["message"][0])
        choice["message"] = {"content": _content(body, inside), **_values(body, inside, ("tool_calls",))}
    return choice


def _last_user(body: bytes, spans: list[scan.Span]) -> list[dict[str, Any]]:
    """The last user message, with as much of its text as a preview needs."""
    for start, _ in reversed(spans):
        if body[start] != ord("{"):
            continue
        message = scan.members(body, start)
        if scan.value(body, message.get("role")) == "user":
            return [{"role": "user", "content": _content(body, message)}]
    return []


def _content(body: bytes, message: dict[str, scan.Span]) -> Any:
    """The beginning of a message's text, or its small parts; None where it has neither."""
    place = message.get("content", (0, 0))
    if body[place[0]] == ord('"'):
        return scan.beginning(body, place)
    if body[place[0]] == ord("["):
        return [scan.value(body, span) for span in scan.elements(body, place)]
    return None


def _values(body: bytes, places: dict[str, scan.Span], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: scan.value(body, places[name]) for name in names if name in places}
