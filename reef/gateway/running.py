"""The calls that are being answered: noticing that a client has left, flushing long streams, ending in time."""

from __future__ import annotations

import asyncio

from aiohttp import web

from reef.gateway.delivery import Delivery

LOOK_EVERY_S = 0.5
LAST_WORDS_S = 3.0
"""How long a call that is cut may take to tell its client and to settle its record."""


class Running:
    """One call, while its task runs."""

    def __init__(self, request: web.Request, delivery: Delivery | None) -> None:
        """`delivery` is None for a call that is not recorded."""
        self.request = request
        self.delivery = delivery
        self.task = asyncio.current_task()
        self.cut = False
        """Whether reef itself is ending the call."""

    @property
    def client_gone(self) -> bool:
        """Whether the client has closed its connection."""
        transport = self.request.transport
        return transport is None or transport.is_closing()

    def cancel(self) -> None:
        """Break off whatever the call is waiting for."""
        if self.task is not None:
            self.task.cancel()

    def take_over(self) -> None:
        """Go on in the task whose wait was broken off."""
        if self.task is not None:
            self.task.uncancel()


class RunningCalls:
    """All of them, with one task that looks after them while there are any."""

    def __init__(self) -> None:
        self._calls: set[Running] = set()
        self._looking: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._calls)

    def enter(self, running: Running) -> None:
        """Count `running` among the calls."""
        self._calls.add(running)
        self._empty.clear()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="running calls")

    def leave(self, running: Running) -> None:
        """The call is over."""
        self._calls.discard(running)
        if not self._calls:
            self._empty.set()

    async def drain(self, seconds: float) -> None:
        """Wait for the calls to end by themselves, then cut them. Returns when none is left or none reacts."""
        self.draining = True
        if not await self._emptied(seconds):
            for running in list(self._calls):
                if not running.cut:
                    running.cut = True
                    running.cancel()
            await self._emptied(LAST_WORDS_S)

    async def _emptied(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._empty.wait(), seconds)
        except TimeoutError:
            return not self._calls
        return True

    async def _look(self) -> None:
        """One look every half second. The server itself does not say that a client has gone before it writes."""
        while self._calls:
            await asyncio.sleep(LOOK_EVERY_S)
            for running in list(self._calls):
                if running.client_gone and not running.cut:
                    running.cancel()
                elif running.delivery is not None and running.delivery.stream is not None:
                    running.delivery.stream.flush_if_due()
