"""One daemon from start to end: take the lock and the address, open the house, answer, drain, close.

A start: lock, address, rooms, HTTP, discovery file; engine and recovery run behind it. A stop: no new calls, running
calls get their time, what is left is cut and recorded as `partial`, steps and engines end, the database closes last. A
second request to stop cuts at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from reef import __version__
from reef.daemon.address import take_address
from reef.daemon.app import build_app
from reef.daemon.house import House
from reef.daemon.lock import Lock, acquire_or_find, check_same, port_wish, serving_facts
from reef.daemon.opening import open_house, recover
from reef.daemon.starting import Start
from reef.errors import ReefError
from reef.paths import Paths

log = logging.getLogger("reef.daemon")
_LAST_WORDS_S = 2.0
TURN_S = 0.0005
"""How long a thread may keep the interpreter from the loop.

With Python's own 5 ms, a thread that reads a large body holds up every turn of the loop by that much, and an event of a
stream beside it takes many turns.
"""


class Daemon:
    """The running daemon of one home."""

    def __init__(self, start: Start, paths: Paths) -> None:
        self._start = start
        self._resolved = start.resolved
        self._paths = paths
        self._stop = asyncio.Event()
        self._cut = asyncio.Event()
        self._house: House | None = None

    async def run(self, lock: Lock, listening: socket.socket) -> None:
        """Serve until asked to stop. `lock` is held and `listening` is bound."""
        self._catch_signals()
        house = self._house = await open_house(self._resolved, self._paths)
        runner = web.AppRunner(build_app(house), handle_signals=False, access_log=None, shutdown_timeout=_LAST_WORDS_S)
        try:
            house.stop = self.ask_to_stop
            host, port = listening.getsockname()[:2]
            house.discovery.update(lock.describe(host, port, serving_facts(self._resolved, house.engines.own.name)))
            await runner.setup()
            await web.SockSite(runner, listening).start()
            own = house.engines.own
            house.discovery["engine"] = {"name": own.name, "model": own.model, "reason": self._start.reason}
            if self._start.typed is not None:
                self._start.typed.write(self._paths)
            lock.announce(house.discovery)
            self._say(house)
            house.engines.start()
            house.indexing.start()
            self._in_background(house, _keep_house(house))
            self._in_background(house, house.sessions.watch())
            # What a start leaves behind lives as long as the process: no later collection has to look at it.
            gc.collect()
            gc.freeze()
            await self._stop.wait()
            await self._drain(house)
        finally:
            await self._close(house, runner)

    def ask_to_stop(self, cut: bool) -> None:
        """Begin to stop; `cut`, or being asked again, does not wait for running calls."""
        if self._house is not None:
            self._house.stopping = True
        if cut or self._stop.is_set():
            self._cut.set()
        self._stop.set()

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.ask_to_stop, False)

    def _say(self, house: House) -> None:
        log.info("reef %s answers at %s", __version__, house.discovery["url"])
        if self._start.foreground:
            sys.stdout.write(f"reef {__version__} · {house.discovery['url']} · pid {house.discovery['pid']}\n")
            sys.stdout.flush()

    def _in_background(self, house: House, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        house.work.add(task)
        task.add_done_callback(house.work.discard)
        task.add_done_callback(_tell_failure)

    async def _drain(self, house: House) -> None:
        """Wait for running calls, for the time that the settings give them or until somebody asks again."""
        seconds = self._resolved.settings.daemon.stop_timeout
        log.info("stopping; %d calls are running", house.gateway.running)
        draining = asyncio.create_task(house.gateway.drain(seconds))
        cutting = asyncio.create_task(self._cut.wait())
        await asyncio.wait({draining, cutting}, return_when=asyncio.FIRST_COMPLETED)
        cutting.cancel()
        if not draining.done():
            log.info("cutting the running calls")
            await house.gateway.drain(0)
        await draining

    async def _close(self, house: House, runner: web.AppRunner) -> None:
        house.feed.close()
        house.housekeeping.stop()
        for task in house.work:
            task.cancel()
        for close in (house.supervisor.stop, runner.cleanup, house.engines.stop, house.gateway.close):
            try:
                await close()
            except (ReefError, OSError):
                log.exception("a room did not close")
        await asyncio.to_thread(house.indexing.stop)
        await asyncio.to_thread(house.writer.close)
        house.reading.close()
        house.repository.close()
        log.info("stopped")


async def _keep_house(house: House) -> None:
    """First what the last daemon left half done, then what is to be removed, for as long as this one runs."""
    await recover(house)
    await house.housekeeping.watch()


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("background work failed", exc_info=task.exception())


def serve(start: Start, paths: Paths) -> int:
    """Be the daemon of this home until stopped; returns the exit status.

    When another process is, say so: an error if `start.asked` (the person named settings) and that one serves with
    others.
    """
    resolved = start.resolved
    lock = Lock(paths)
    found = acquire_or_find(lock, paths, resolved.settings.reef.ready_timeout)
    if found is not None:
        if start.asked:
            check_same(found, serving_facts(resolved))
        if start.foreground:
            sys.stdout.write(f"already running · {found['url']} · pid {found['pid']}\n")
            sys.stdout.flush()
        return 0
    sys.setswitchinterval(TURN_S)
    try:
        listening = take_address(resolved.settings.reef.host, port_wish(resolved))
        # Not `asyncio.run`: its end waits for threads, and one may be waiting for an install.
        loop = asyncio.new_event_loop()
        loop.run_until_complete(_run(start, paths, lock, listening))
    finally:
        lock.release()
    return 0


async def _run(start: Start, paths: Paths, lock: Lock, listening: socket.socket) -> None:
    await Daemon(start, paths).run(lock, listening)
