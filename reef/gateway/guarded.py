"""The copy of a stream, folded so that no fault in reading it reaches the relay: the record says it instead."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from reef.gateway.dialect import Fold, ReplyFacts

log = logging.getLogger("reef.gateway")
UNREADABLE = "the model server's reply could not be read"
T = TypeVar("T")


class GuardedFold:
    """A fold that never raises. After its first fault it reads no further, and what it has is no whole reply."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._broken = False

    @property
    def pending(self) -> int:
        """Bytes taken whose text `catch_up` has not told yet."""
        return self._fold.pending

    def feed(self, piece: bytes) -> None:
        """Take the next bytes as they came."""
        if not self._broken:
            self._fold.feed(piece)

    def keep_up(self) -> None:
        """Parse what has come, without telling it."""
        self._guarded(self._fold.keep_up, None)

    def catch_up(self) -> bytes:
        """Parse what is pending. Returns the text said since the last time, as UTF-8."""
        return self._guarded(self._fold.catch_up, b"")

    def facts(self, finished: bool = False) -> ReplyFacts:
        """What has come so far, folded; `error` says when that is not all of it."""
        found = self._guarded(lambda: self._fold.facts(finished), ReplyFacts())
        if self._broken:
            found.ended = False
            found.error = found.error or UNREADABLE
        return found

    def ending(self, event: bytes, receipt: str) -> bytes:
        """What to send in place of the ending event's bytes so that they carry `receipt`."""
        return self._guarded(lambda: self._fold.ending(event, receipt), event)

    def _guarded(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Exception:
            # The edge of the recording: whatever a server sends, its bytes go on.
            if not self._broken:
                log.exception("a stream could not be read")
            self._broken = True
            return otherwise
