"""Asking again for a reply that the engine broke off, as some do when new weights are loaded.

Only before the client has a byte of it, and only of an engine that is spoken to in chat: the other dialects have no
word for it. All tries are one call with one record, whose load id is the last one's.
"""

from __future__ import annotations

import time
from typing import Any

from reef.config import InferenceSection
from reef.gateway.chat_fold import ChatFold
from reef.gateway.dialect import BROKEN_OFF, Problem
from reef.gateway.guarded import GuardedFold

HELD_MAX = 1024 * 1024
"""A longer beginning of a reply goes out, and with it the chance to ask again."""


class BrokenOff(Exception):
    """The engine broke off a reply of which the client has nothing yet."""


class Tries:
    """The tries of one call, as its record lists them, and how long to wait between them."""

    def __init__(self, settings: InferenceSection, attempts: list[dict[str, Any]]) -> None:
        """`attempts` is the record's list; it stays empty for a call that needs one try."""
        self._attempts = attempts
        self._wait = settings.retry_initial_s
        self._longest = settings.retry_max_s
        self._seconds = settings.retry_timeout_s
        self._until = time.monotonic() + settings.retry_timeout_s
        self._again = False

    def begin(self, load_id: str | None) -> None:
        """A try begins, on the weights that are loaded now."""
        if self._again:
            self._attempts.append({"load_id": load_id})

    def broken_off(self, load_id: str | None) -> float | None:
        """It was broken off. Returns how long to wait for the next one, None when the time for tries is over."""
        if not self._attempts:
            self._attempts.append({})
        self._attempts[-1] |= {"load_id": load_id, "error": BROKEN_OFF}
        self._again = True
        wait, self._wait = self._wait, min(self._wait * 2, self._longest)
        return wait if time.monotonic() + wait < self._until else None

    def given_up(self) -> Problem:
        """What the client is told when the time is over."""
        message = f"the engine broke the reply off again and again for {self._seconds:g} s"
        return Problem(503, message, code="broken_off", headers={"retry-after": "1"})


class Held:
    """The beginning of a chat stream, held while nothing is said in it: what is broken off there is asked for again."""

    def __init__(self) -> None:
        self._fold = GuardedFold(ChatFold())
        self._pieces: list[bytes] = []
        self._size = 0

    def take(self, piece: bytes) -> bytes:
        """What may go out now: nothing, or everything that came. Raises BrokenOff."""
        self._pieces.append(piece)
        self._size += len(piece)
        self._fold.feed(piece)
        said = self._fold.catch_up()
        facts = self._fold.facts()
        if not said and facts.error == BROKEN_OFF:
            raise BrokenOff
        if said or facts.finish_reason or facts.error or self._size > HELD_MAX:
            return b"".join(self._pieces)
        return b""

    def rest(self) -> bytes:
        """What is held at the stream's end."""
        return b"".join(self._pieces)
