"""Server-sent events: reading a copy of a stream, and finding the place where a stream ends without holding it up.

Both take pieces of any size, cut anywhere, in every legal framing: `\\n`, `\\r\\n` or `\\r` line ends, no blank after
the colon, comments, several data lines, a last event without a blank line behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

LINE_END = re.compile(rb"\r\n|\n|\r")
BLANK_LINE = re.compile(rb"\r\n(?:\r\n?|\n)|\n(?:\r\n?|\n)|\r\r\n?")
"""Two line ends in a row, each `\\r\\n`, `\\n` or `\\r`; a `\\r\\n` alone is one."""
_BETWEEN = re.compile(rb"(?:(?::[^\r\n]*)?(?:\r\n?|\n))*")
"""Empty lines and whole comment lines: what may stand between two events."""
_HEAD_BYTES = 4096
"""How much of an event is looked at first to tell whether it is the last."""
_UNDECIDED_MAX = 1024 * 1024
"""A longer event that has not said by then what it is, is not waited for."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name (empty when it has none) and its data, lines joined by a newline."""

    name: str
    data: bytes


class EventReader:
    """Takes a copy of the bytes of a stream and gives the events that are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes."""
        rest = self._rest
        rest += piece
        # A carriage return at the very end may be the first half of a line end.
        limit = len(rest) - 1 if rest.endswith(b"\r") else len(rest)
        events: list[Event] = []
        start = 0
        while match := BLANK_LINE.search(rest, max(start, self._searched), limit):
            event = parse_event(bytes(rest[start : match.start()]))
            if event is not None:
                events.append(event)
            start = match.end()
            self._searched = start
        del rest[:start]
        self._searched = max(0, len(rest) - 3)
        return events

    def finish(self) -> list[Event]:
        """The last event when no blank line followed it."""
        event = parse_event(bytes(self._rest))
        self._rest.clear()
        self._searched = 0
        return [event] if event is not None else []


def parse_event(text: bytes) -> Event | None:
    """One event from its lines, without the blank line; None when it has no data."""
    if text.startswith(b"data: ") and b"\n" not in text and b"\r" not in text:
        return Event("", text[6:])
    name = ""
    data: list[bytes] = []
    for line in LINE_END.split(text.removeprefix(b"\xef\xbb\xbf")):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return Event(name, b"\n".join(data)) if data else None


class EndWatch:
    """Passes a stream's bytes on unchanged and stops exactly before the event that ends it.

    Only bytes that may be the beginning of that event are held back; they are at most the few lines before its data
    says what it is, and the event before it where the dialect wants that too.
    """

    def __init__(
        self,
        is_end: Callable[[bytes], bool | None],
        tokens: tuple[bytes, ...],
        whole: bool = False,
        before_end: Callable[[bytes], bool | None] | None = None,
    ) -> None:
        """`is_end` gets an event from its first line on, finished or not: True, False, or None while that is open.

        A piece that starts and ends with an event, and holds none of `tokens`, is passed without a look inside.
        With `whole` the ending event is given out when its last byte is there. A short event for which `before_end`
        says True is given out as the beginning of the ending when the ending event is what follows it.
        """
        self._is_end = is_end
        self._tokens = tokens
        self._whole = whole
        self._before_end = before_end
        self._undecided = bytearray()
        self._ending = bytearray()
        self._inside = False
        self._tail = b""
        self.ended = False
        """Whether the ending event has been given out."""

    @property
    def inside(self) -> bool:
        """Whether what was passed on breaks off in the middle of an event."""
        return self._inside

    def feed(self, piece: bytes) -> tuple[bytes, bytes]:
        """What may go out now, and the bytes from the ending event on (empty before it has come)."""
        if self.ended:
            return b"", piece
        if self._ending:
            return b"", self._end(piece)
        between = not self._inside and not self._undecided
        clean = between and piece.startswith((b"data: ", b"event: ")) and piece.endswith(b"\n\n")
        if not clean:
            return self._look(piece)
        # Every event of every stream comes by here.
        for token in self._tokens:
            if token in piece:
                return self._look(piece)
        return piece, b""

    def finish(self) -> tuple[bytes, bytes]:
        """The same for the end of the stream: whatever was held back goes out."""
        held = bytes(self._ending or self._undecided)
        if not self.ended and (self._ending or (held and self._verdict(held + b"\n\n", 0))):
            self.ended = True
            return b"", held
        self._undecided.clear()
        return held, b""

    def _look(self, piece: bytes) -> tuple[bytes, bytes]:
        data = bytes(self._undecided) + piece
        self._undecided.clear()
        place = 0
        while place < len(data):
            if self._inside:
                place = self._leave(data, place)
                continue
            place = _BETWEEN.match(data, place).end()  # type: ignore[union-attr]
            if place == len(data):
                break
            verdict = self._verdict(data, place)
            if verdict is None:
                self._undecided += data[place:]
                return data[:place], b""
            if verdict:
                return data[:place], self._end(data[place:])
            self._inside = True
        return data, b""

    def _verdict(self, data: bytes, place: int) -> bool | None:
        """Whether the ending begins at `place`; None while that is open."""
        verdict = self._ends_here(data, place)
        if verdict is not False or self._before_end is None:
            return verdict
        head = _head(data, place)
        if len(head) >= _HEAD_BYTES:
            return False
        if not (before := self._before_end(head)):
            return before
        following = _BETWEEN.match(data, place + len(head)).end()  # type: ignore[union-attr]
        return None if following == len(data) else self._ends_here(data, following)

    def _ends_here(self, data: bytes, place: int) -> bool | None:
        head = _head(data, place)
        verdict = self._is_end(head)
        if verdict is not None or len(head) < _HEAD_BYTES:
            return verdict
        match = BLANK_LINE.search(data, place)
        if match is not None:
            return self._is_end(data[place : match.end()])
        return None if len(data) - place < _UNDECIDED_MAX else False

    def _end(self, piece: bytes) -> bytes:
        """Take bytes of the ending event; gives it out when enough of it is there."""
        searched = max(0, len(self._ending) - 3)
        self._ending += piece
        if self._whole and not BLANK_LINE.search(self._ending, searched):
            return b""
        self.ended = True
        ending = bytes(self._ending)
        self._ending.clear()
        return ending

    def _leave(self, data: bytes, place: int) -> int:
        """The place behind the blank line that ends the event, or the end of `data` when that has not come."""
        # The blank line may have begun in bytes that are gone already.
        text = self._tail + data[place:]
        match = BLANK_LINE.search(text)
        if match is None:
            self._tail = text[-3:]
            return len(data)
        after = place + match.end() - len(self._tail)
        self._tail = b""
        self._inside = False
        return after


def _head(data: bytes, place: int) -> bytes:
    """The event at `place` as far as it has come, or its beginning when it is long."""
    head = data[place : place + _HEAD_BYTES]
    match = BLANK_LINE.search(head)
    return head[: match.end()] if match else head


def first_data(event: bytes) -> tuple[bytes, bool] | None:
    """The first data line of an event that may be unfinished, and whether that line is complete; None without one."""
    place = 0
    for match in LINE_END.finditer(event):
        data = _data(event[place : match.start()])
        if data is not None:
            return data, True
        place = match.end()
    data = _data(event[place:])
    return None if data is None else (data, False)


def _data(line: bytes) -> bytes | None:
    return line[5:].removeprefix(b" ") if line.startswith(b"data:") else None
