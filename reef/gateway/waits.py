"""Waits that are all equally long, under one timer.

Every call waits for its record, and nearly every wait is over long before its time: a timer for each would cost more
than all that it guards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any


class Wait:
    """One wait that has begun."""

    __slots__ = ("until", "wake")

    def __init__(self, until: float, wake: Callable[[], None]) -> None:
        self.until = until
        self.wake: Callable[[], None] | None = wake

    def end(self) -> None:
        """It is over, whatever was waited for: `wake` is not called any more."""
        self.wake = None


class Waits:
    """Waits of `seconds` each, on one loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: deque[Wait] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, wake: Callable[[], None]) -> Wait:
        """Have `wake` called when the time is over, unless the wait is ended before."""
        loop = asyncio.get_running_loop()
        wait = Wait(loop.time() + self._seconds, wake)
        self._begun.append(wait)
        if self._timer is None:
            self._timer = loop.call_at(wait.until, self._look, loop)
        return wait

    async def done(self, future: asyncio.Future[Any]) -> bool:
        """Wait for `future`, without touching it. Returns whether it is done; False when the time was over first."""
        if future.done():
            return True
        waiter = asyncio.get_running_loop().create_future()

        def wake(_: object = None) -> None:
            if not waiter.done():
                waiter.set_result(None)

        wait = self.begin(wake)
        future.add_done_callback(wake)
        try:
            await waiter
        finally:
            wait.end()
            future.remove_done_callback(wake)
        return future.done()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake who has waited long enough; they stand in the order in which they began."""
        self._timer = None
        now = loop.time()
        begun = self._begun
        while begun and (begun[0].wake is None or begun[0].until <= now):
            wake = begun.popleft().wake
            if wake is not None:
                wake()
        if begun and self._timer is None:
            self._timer = loop.call_at(begun[0].until, self._look, loop)
