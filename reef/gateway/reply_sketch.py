"""The few values of a very large reply that its facts need, found without parsing it; each raises ValueError.

Texts are cut to their beginning, and a tool call's arguments are left out when they are long.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from reef.gateway import scan

PARTS_MAX = 10_000
"""So many choices, blocks or items of one reply are looked at."""


def chat_sketch(body: bytes) -> dict[str, Any]:
    """A chat reply: its error, its usage, and its first choice."""
    places = scan.members(body)
    reply = _values(body, places, ("error", "usage"))
    return reply | {"choices": _listed(body, places.get("choices"), _choice, 1)}


def messages_sketch(body: bytes) -> dict[str, Any]:
    """A messages reply: its blocks and the small values beside them."""
    places = scan.members(body)
    reply = _values(body, places, ("type", "error", "usage", "stop_reason", "input_tokens"))
    return reply | {"content": _listed(body, places.get("content"), _part)}


def responses_sketch(body: bytes) -> dict[str, Any]:
    """A responses reply: its items and the small values beside them."""
    places = scan.members(body)
    reply = _values(body, places, ("id", "status", "error", "usage", "incomplete_details"))
    return reply | {"output": _listed(body, places.get("output"), _part)}


def _choice(body: bytes, span: scan.Span) -> dict[str, Any]:
    places = scan.members(body, span[0])
    choice = _values(body, places, ("finish_reason",))
    if "message" in places and _begins(body, places["message"], b"{"):
        inside = scan.members(body, places["message"][0])
        choice["message"] = {"content": _content(body, inside), **_values(body, inside, ("tool_calls",))}
    return choice


def _part(body: bytes, span: scan.Span) -> dict[str, Any]:
    """A block or an item: its small values, and the beginning of its text or of its parts' texts."""
    places = scan.members(body, span[0])
    found = _values(body, places, ("type", "name", "input", "arguments"))
    if "text" in places:
        found["text"] = _text(body, places["text"])
    if "content" in places:
        found["content"] = _content(body, places)
    return found


def _content(body: bytes, places: dict[str, scan.Span]) -> Any:
    """The beginning of a text, or the parts of a list; None where it is neither."""
    span = places.get("content")
    return _listed(body, span, _part) or _text(body, span)


def _text(body: bytes, span: scan.Span | None) -> str | None:
    return scan.beginning(body, span) if span is not None and _begins(body, span, b'"') else None


def _listed(
    body: bytes, span: scan.Span | None, read: Callable[[bytes, scan.Span], dict[str, Any]], most: int = PARTS_MAX
) -> list[dict[str, Any]]:
    """What `read` finds in every object of a list; nothing where there is no list."""
    if span is None or not _begins(body, span, b"["):
        return []
    spans = islice(scan.elements(body, span), most)
    return [read(body, one) if _begins(body, one, b"{") else {} for one in spans]


def _begins(body: bytes, span: scan.Span, mark: bytes) -> bool:
    return body[span[0] : span[0] + 1] == mark


def _values(body: bytes, places: dict[str, scan.Span], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: scan.value(body, places[name]) for name in names if name in places}
