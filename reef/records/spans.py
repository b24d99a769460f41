"""Where a body is cut into parts: found in the bytes, without parsing and without knowing any field's name.

Every cut depends only on the bytes before it, so that a longer conversation is cut like the shorter one it repeats.
The spans joined are the body, whatever it is; a body that is no JSON is only cut less well.
"""

from __future__ import annotations

import re

Span = bytes | memoryview
Layout = list[Span | list[Span]]
"""Spans in order; an inner list holds the spans of one array."""

WHOLE_BELOW = 8 * 1024
"""Bodies under this many bytes stay whole."""

SPAN_MIN = ((2048, 512), (3072, 8 * 1024))
"""A span inside an array ends with the first element that brings it to 512 bytes; behind many spans to more."""
SPAN_MIN_BEYOND = 64 * 1024

LONG_STRING = 8 * 1024
"""A string of at least this many bytes (an image, a file) is a span of its own."""

PIECE = 1024 * 1024
"""Longer spans are cut into pieces of this many bytes, so that nobody waits long for one statement."""

STEPS_MAX = 100_000
"""Searches made in one body; what follows them is cut by length alone. Keeps a hostile body from taking minutes."""

_WINDOW = 64 * 1024  # One search holds the interpreter for well under a millisecond.
# No possessive quantifier and no atomic group: Python before 3.11.5 matches them wrongly. What may follow a loop here
# begins with a byte that the loop does not take, so that giving back fails at once and nothing is tried twice.
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_PLAIN = re.compile(rb'(?:[^"\[\]{}]+|' + _TEXT + rb"){0,64}", re.DOTALL)
_STRING = re.compile(_TEXT, re.DOTALL)
_QUOTE, _BACKSLASH, _ARRAY = ord('"'), ord("\\"), ord("[")
_OPEN = frozenset(b"[{")


def split(body: bytes) -> Layout:
    """`body` as spans: glue, long strings, and for each array directly in the outermost value a list of its elements.

    A body under `WHOLE_BELOW` is `[body]`, the same object.
    """
    if len(body) < WHOLE_BELOW:
        return [body]
    return _Cutter(body).run()


class _Cutter:
    """One pass over one body."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.view = memoryview(body)
        self.layout: Layout = []
        self.array: list[Span] | None = None
        """Spans of the array that is open; it stands in the layout once it has some."""
        self.array_start = 0
        self.cut = 0
        """Everything before this is in a span."""
        self.spans = 0
        self.steps = 0

    def run(self) -> Layout:
        body, end = self.body, len(self.body)
        position = depth = array_depth = 0
        while (position := self._skip(position)) < end:
            mark = body[position]
            if mark == _QUOTE:
                position = self._long_string(position)
            elif mark in _OPEN:
                position += 1
                depth += 1
                if self.array is None and mark == _ARRAY and depth <= 2:
                    self.array, self.array_start, array_depth = [], position, depth
            else:
                if self.array is not None and depth == array_depth:
                    self._end_array(position)
                depth -= 1
                position += 1
                if self.array is not None and depth == array_depth:
                    size = position - max(self.cut, self.array_start)
                    if size >= self._span_min():
                        self._span(position)
        self._end_array(end)
        self._span(end)
        return self.layout

    def _skip(self, position: int) -> int:
        """The next bracket, or the quote of a string that is long or never ends; cuts around long strings on the way.

        The end of the body when there is none, or when enough has been searched.
        """
        body, end = self.body, len(self.body)
        while position < end and self.steps < STEPS_MAX:
            self.steps += 1
            match = _PLAIN.match(body, position, min(end, position + _WINDOW))
            assert match is not None
            after = match.end()
            if after - position >= LONG_STRING:
                for string in _STRING.finditer(body, position, after):
                    if string.end() - string.start() - 2 >= max(LONG_STRING, self._span_min()):
                        self._span(string.start() + 1)
                        self._span(string.end() - 1)
            if after == position:
                return after
            position = after
        return end

    def _long_string(self, quote: int) -> int:
        """The position after a string that is longer than a window, or that the window happened to cut."""
        body, end = self.body, len(self.body)
        start = search = quote + 1
        close = end
        while self.steps < STEPS_MAX and (found := body.find(b'"', search)) >= 0:
            self.steps += 1
            before = found - 1
            while before >= start and body[before] == _BACKSLASH:
                before -= 1
            if (found - before) % 2:
                close = found
                break
            search = found + 1
        if close - start >= max(LONG_STRING, self._span_min()):
            self._span(start)
            self._span(close)
        return min(end, close + 1)

    def _span_min(self) -> int:
        """What depends on the cuts before alone keeps equal beginnings cut alike; an image is one cut, however long."""
        for limit, size in SPAN_MIN:
            if self.spans < limit:
                return size
        return SPAN_MIN_BEYOND

    def _span(self, end: int) -> None:
        target: list[Span] | Layout = self.layout
        if self.array is not None:
            if not self.array:
                open_array, self.array = self.array, None
                self._span(self.array_start)
                self.array = open_array
                self.layout.append(open_array)
            target = self.array
        while end > self.cut:
            piece = min(end, self.cut + PIECE)
            target.append(self.view[self.cut : piece])
            self.cut = piece
            self.spans += 1

    def _end_array(self, end: int) -> None:
        """Close the array that is open: what is left of it joins its spans; a small array stays in the glue."""
        if self.array:
            self._span(end)
        self.array = None
