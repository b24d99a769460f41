"""Streams whose events say what they are: by their name, by the `type` in their data, or by both."""

from __future__ import annotations

import re
from typing import Any

from reef.gateway.lenient import dump, parse
from reef.gateway.sse import BLANK_LINE, LINE_END, parse_event

_TYPE_FIRST = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]*)"')
_UNNAMED = (b"", b"message")
"""Names that say nothing: an event has the second one when it has none."""


def ends(event: bytes, names: frozenset[bytes]) -> bool | None:
    """Whether an event, perhaps unfinished, is one of `names`; None while that is open."""
    place = 0
    name: bytes | None = None
    data: list[bytes] = []
    finished = False
    for match in LINE_END.finditer(event):
        line = event[place : match.start()]
        place = match.end()
        if not line:
            finished = True
            break
        if line.startswith(b"event:"):
            name = line[6:].removeprefix(b" ")
            if name not in _UNNAMED:
                return name in names
        elif line.startswith(b"data:"):
            data.append(line[5:])
    rest = event[place:]
    if not finished and rest.startswith(b"data:"):
        data.append(rest[5:])
    kind = _TYPE_FIRST.match(b"\n".join(data))
    if kind is not None:
        return kind[1] in names
    if not finished:
        return None
    if not any(known in event for known in names):
        return False
    return _type_of(event) in names


def _type_of(event: bytes) -> bytes:
    """The type in the data of a finished event."""
    found = parse_event(event)
    try:
        data = parse(found.data) if found is not None else None
    except ValueError:
        return b""
    kind = data.get("type") if isinstance(data, dict) else None
    return kind.encode("utf-8", "replace") if isinstance(kind, str) else b""


def with_receipt(event: bytes, receipt: str) -> bytes:
    """`event` with the receipt as the last member of the object in its data; every other byte as it was.

    `event` may be followed by others; they stay as they are, and so does an event whose data is no object.
    """
    match = BLANK_LINE.search(event)
    end = match.start() if match else len(event)
    close = _last_brace(event[:end])
    if close < 0:
        return event
    comma = b"" if event[:close].rstrip().endswith(b"{") else b","
    member = dump({"agent_record_id": receipt})
    return b"".join((event[:close], comma, b'"reef":', member, event[close:]))


def _last_brace(event: bytes) -> int:
    """The place of the brace that closes the object in the last data line; -1 when there is none."""
    lines = [match.end() for match in LINE_END.finditer(event)]
    starts, ends_at = [0, *lines], [*lines, len(event)]
    for start, end in zip(reversed(starts), reversed(ends_at), strict=True):
        line = event[start:end]
        if line.startswith(b"data:") and line.strip() != b"data:":
            return start + line.rstrip().rindex(b"}") if line.rstrip().endswith(b"}") else -1
    return -1


def framed(name: str, data: dict[str, Any]) -> bytes:
    """An event as the bytes of a stream."""
    return b"event: " + name.encode() + b"\ndata: " + dump(data) + b"\n\n"
