"""Events for those who listen: the `events` table is the source, this only says when to look again."""

from __future__ import annotations

import asyncio
from typing import Any

from reef.daemon.reading import Reading
from reef.records.writer import Writer

_WINDOW = 500


class Feed:
    """Wakes listeners after each commit. Used as `async with feed:` while listening."""

    def __init__(self, writer: Writer, reading: Reading) -> None:
        self._reading = reading
        self._loop = asyncio.get_running_loop()
        self._listeners = 0
        self._waiting = asyncio.Event()
        self.closed = False
        self.generation = 0
        """Grows with every commit: take it before reading, hand it to `wait` afterwards."""
        writer.after_commit(self._committed)

    async def __aenter__(self) -> Feed:
        self._listeners += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listeners -= 1

    async def after(self, sequence: int) -> list[dict[str, Any]]:
        """Up to 500 events after `sequence`, oldest first."""
        return await self._reading(lambda reader: reader.events(after=sequence, limit=_WINDOW))

    async def last(self) -> int:
        """The sequence of the newest event; 0 when there is none."""
        return await self._reading(lambda reader: reader.last_event())

    async def wait(self, generation: int, seconds: float) -> bool:
        """Wait for a commit after `generation`; False after `seconds` without one."""
        if generation != self.generation:
            return True
        try:
            await asyncio.wait_for(self._waiting.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Wake every listener for the last time."""
        self.closed = True
        self._wake()

    def _committed(self) -> None:
        """In the writer's thread: nobody listening costs one comparison."""
        self.generation += 1
        if self._listeners and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self.generation += 1
        woken, self._waiting = self._waiting, asyncio.Event()
        woken.set()
