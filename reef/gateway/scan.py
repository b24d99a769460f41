"""Finding values in a JSON body of many megabytes without parsing it: it must not hold the interpreter for long.

A parser written in C keeps every other thread waiting until it is done; this walks the bytes in windows, so that a
stream beside it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reef.gateway.lenient import parse

SCAN_ABOVE = 4 * 1024 * 1024
"""Bodies over this size are walked, not parsed as a whole."""
_WINDOW = 64 * 1024
# No possessive quantifier and no atomic group: Python before 3.11.5 matches them wrongly. What may follow a loop here
# begins with a byte that the loop does not take, so that giving back fails at once and nothing is tried twice.
_TEXT = rb'[^"\\]*(?:\\.[^"\\]*)*'
_INSIDE_STRING = re.compile(_TEXT, re.DOTALL)
_STRING = rb'"' + _TEXT + rb'"'
_FLAT = rb'[^"\[\]{}]*(?:' + _STRING + rb'[^"\[\]{}]*)*'
_PLAIN = re.compile(rb'(?:[^"\[\]{}]+|' + _STRING + rb"|\{" + _FLAT + rb"\}|\[" + _FLAT + rb"\])*", re.DOTALL)
"""Everything up to the next bracket that is not closed in one level; whole strings are part of it."""
_BLANKS = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^,\]} \t\r\n]+")
_OPEN = b"[{"
DEPTH_MAX = 1000
"""Deeper nesting is refused, as parsers do."""
_BACKSLASH = ord("\\")

Span = tuple[int, int]


def members(body: bytes, place: int = 0) -> dict[str, Span]:
    """The places of the values of the object at `place`, by key; a key that is there twice has its last place.

    Raises ValueError when there is no object.
    """
    return {key: span for key, _, span in placed(body, place)}


def placed(body: bytes, place: int = 0) -> Iterator[tuple[str, int, Span]]:
    """Each member of the object at `place`: its key, where that begins, and the place of its value.

    Raises ValueError when there is no object.
    """
    place = _skip(body, place)
    if body[place : place + 1] != b"{":
        raise ValueError("not an object")
    place = _skip(body, place + 1)
    while body[place : place + 1] != b"}":
        begin, end = place, end_of_value(body, place)
        key = parse(body[place:end])
        place = _skip(body, end)
        if not isinstance(key, str) or body[place : place + 1] != b":":
            raise ValueError("not an object")
        start = _skip(body, place + 1)
        end = end_of_value(body, start)
        yield key, begin, (start, end)
        place = _next(body, end, b"}")


def elements(body: bytes, span: Span) -> Iterator[Span]:
    """The places of the elements of the array at `span`. Raises ValueError when there is none."""
    place = span[0]
    if body[place : place + 1] != b"[":
        raise ValueError("not an array")
    place = _skip(body, place + 1)
    while body[place : place + 1] != b"]":
        end = end_of_value(body, place)
        yield place, end
        place = _next(body, end, b"]")


def value(body: bytes, span: Span | None, limit: int = 256 * 1024) -> Any:
    """The parsed value at `span`; None when there is none or when it is longer than `limit` bytes."""
    if span is None or span[1] - span[0] > limit:
        return None
    return parse(body[span[0] : span[1]])


def beginning(body: bytes, span: Span, limit: int = 4096) -> str:
    """The first part of the string at `span`, at most `limit` bytes of it."""
    part = body[span[0] + 1 : min(span[1] - 1, span[0] + limit)]
    # A cut may have gone through an escape or a character.
    for less in range(min(12, len(part))):
        try:
            return str(parse(b'"' + part[: len(part) - less] + b'"'))
        except ValueError:
            continue
    return ""


def end_of_value(body: bytes, start: int) -> int:
    """The place behind the value that starts at `start`. Raises ValueError when it has no end or is nested too deep."""
    first = body[start : start + 1]
    if first == b'"':
        return _end_of_string(body, start)
    if first not in (b"[", b"{"):
        match = _SCALAR.match(body, start)
        if match is None:
            raise ValueError("a value is missing")
        return match.end()
    depth = 1
    place = start + 1
    while True:
        place = _run(_PLAIN, body, place)
        token = body[place : place + 1]
        if token == b'"':
            place = _end_of_string(body, place)
            continue
        if not token:
            raise ValueError("the body ends too early")
        depth += 1 if token in _OPEN else -1
        place += 1
        if depth == 0:
            return place
        if depth > DEPTH_MAX:
            raise ValueError("the body is nested too deep")


def _end_of_string(body: bytes, start: int) -> int:
    found = body.find(b'"', start + 1)
    if found > 0 and body[found - 1] != _BACKSLASH:
        # The first quote is not escaped, whatever stands before it.
        return found + 1
    place = _run(_INSIDE_STRING, body, start + 1)
    if body[place : place + 1] != b'"':
        raise ValueError("a string has no end")
    return place + 1


def _run(pattern: re.Pattern[bytes], body: bytes, place: int) -> int:
    """Go on with `pattern` window by window until it stops before a window's end."""
    while True:
        limit = place + _WINDOW
        match = pattern.match(body, place, limit)
        end = match.end() if match else place
        # An escape that a window cuts in two is left for the next window.
        if end < limit - 1 or end == place:
            return end
        place = end


def _skip(body: bytes, place: int) -> int:
    match = _BLANKS.match(body, place)
    return match.end() if match else place


def _next(body: bytes, end: int, close: bytes) -> int:
    """The place of the next member or element, or of `close`."""
    place = _skip(body, end)
    if body[place : place + 1] == b",":
        return _skip(body, place + 1)
    if body[place : place + 1] != close:
        raise ValueError("a comma is missing")
    return place
