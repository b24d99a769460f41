"""What the folds of all dialects share: taking bytes without parsing them, and joining texts that come in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from reef.gateway.lenient import parse
from reef.gateway.sse import Event, EventReader


class StreamFold(ABC):
    """Takes the bytes of one stream; parses them when asked to."""

    def __init__(self) -> None:
        self.pending = 0
        self._error: str | None = None
        self._ended = False
        self._said: list[str] = []
        self._unread = 0
        """Places where the stream holds something that the folded reply is without."""
        self._reader = EventReader()
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Take the next bytes as they came."""
        self._pieces.append(piece)
        self.pending += len(piece)

    def keep_up(self) -> None:
        """Parse what has come. It stays pending until `catch_up` has told what was said."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            for event in self._reader.feed(piece):
                self._take(event)

    def catch_up(self) -> bytes:
        """Parse what is pending. Returns the text said since the last time, as UTF-8."""
        self.keep_up()
        self.pending = 0
        said, self._said = self._said, []
        return "".join(said).encode("utf-8", "surrogatepass")

    def _read(self, finished: bool) -> None:
        """Parse everything that has come; `finished`: no more will, so the last event needs no blank line."""
        self.catch_up()
        if finished:
            for event in self._reader.finish():
                self._take(event)

    def _object(self, event: Event) -> dict[str, Any] | None:
        """The object that an event's data is; None for no content, and for what cannot be read."""
        data = event.data.strip()
        # Some servers keep a connection alive with events of no content.
        if data in (b"", b"[DONE]"):
            return None
        try:
            found = parse(data)
        except ValueError:
            found = None
        self._unread += not isinstance(found, dict)
        return found if isinstance(found, dict) else None

    def _objects(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list; whatever else stands there, or in place of the list, is not read."""
        listed = value if isinstance(value, list) else [value]
        found = [item for item in value if isinstance(item, dict)] if listed is value else []
        self._unread += sum(item is not None for item in listed) - len(found)
        return found

    def _problem(self, holds_reply: bool) -> str | None:
        """Why the folded reply is not what the stream said; None when it is."""
        if self._error is None and self._unread:
            return "parts of the model server's stream could not be read"
        if self._error is None and self._ended and not holds_reply:
            return "the model server's stream holds no reply"
        return self._error

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Fold one event."""


class Pieces(list[str]):
    """A text that is still coming; joined once, at the end, because growing a long text piece by piece is slow."""


def joined(known: Any, value: Any) -> Any:
    """`value` added to what is known of it: texts and lists grow, objects member by member, anything else is new."""
    if isinstance(value, str):
        if isinstance(known, Pieces):
            known.append(value)
            return known
        return Pieces((known, value) if isinstance(known, str) else (value,))
    if isinstance(known, list) and isinstance(value, list) and not isinstance(known, Pieces):
        known.extend(value)
        return known
    if isinstance(known, dict) and isinstance(value, dict):
        return known | {name: joined(known.get(name), part) for name, part in value.items() if part is not None}
    return known if value is None else value


def whole(value: Any) -> Any:
    """`value` with every text that came in pieces as one string."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole(part) for part in value]
    return value
