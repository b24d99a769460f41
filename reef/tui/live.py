"""Follows the daemon's events on a thread of its own and hands them over in bunches, at most ten a second."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from reef.errors import DaemonUnreachable, ReefError

Json = dict[str, Any]
MOST_HELD = 10_000
RETRY_S = 1.0


class Follower:
    """Reads events until it is stopped; while no daemon answers it tries again every second."""

    def __init__(self, events: Callable[[int | None], Iterator[Json]]) -> None:
        self._events = events
        self._held: deque[Json] = deque(maxlen=MOST_HELD)
        self._stop = threading.Event()
        self._last: int | None = None
        self.lost: ReefError | None = None
        """Why events do not come now; None while they may."""
        self._thread = threading.Thread(target=self._run, name="reef-tui-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def drain(self) -> list[Json]:
        """The events since the last call, oldest first."""
        found = []
        while self._held:
            found.append(self._held.popleft())
        return found

    def _run(self) -> None:
        while not self._stop.is_set():
            self._run_once()
            self._stop.wait(RETRY_S)

    def _run_once(self) -> None:
        """Follow one connection to its end; `lost` says why it ended."""
        try:
            for event in self._events(self._last):
                self.lost = None
                self._last = event.get("sequence", self._last)
                self._held.append(event)
                if self._stop.is_set():
                    return
            self.lost = DaemonUnreachable("the daemon ended its events", "reef up")
        except ReefError as error:
            self.lost = error
