"""The daemon's side of learning: asks queue, each gets one step, one step at a time in a scenario, every step a row.

Nothing that a step does can end the daemon: its process may crash, hang or talk nonsense, and the outcome is a `failed`
row with the reason. Every ask is settled exactly once, also over a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from reef.errors import Conflict, NotFound
from reef.ids import is_id
from reef.learning import ledger
from reef.learning.attempt import Attempt, Home, Outcome
from reef.learning.ledger import STOPPED
from reef.learning.output import sweep
from reef.records.writer import RecordingFailed

log = logging.getLogger("reef.learning")

AT_ONCE = 2
"""Steps that run at the same time, all scenarios together."""
_RETRY_S = 1.0


class Supervisor:
    """Runs the steps of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._running: dict[str, Attempt] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._recovered = False
        self._stopping = False

    async def start(self) -> list[tuple[str, int]]:
        """Settle what an earlier daemon left running, then go on with the queues. Call after `Publisher.recover`.

        Returns (scenario, step) of every step that was marked failed.
        """
        # Tried again until the store can be written: a failure loses nothing.
        broken = await self._home.writer.write(ledger.settle_broken_off, essential=False)
        for scenario, step in broken:
            await asyncio.to_thread(sweep, self._home.paths.steps / scenario / str(step))
        waiting = await self._home.writer.write(ledger.waiting)
        self._recovered = True
        for scenario in {*waiting, *self._again}:
            self.wake(scenario)
        return broken

    def wake(self, scenario: str) -> None:
        """Look at the scenario's queue: call it after an ask was stored."""
        self._again.add(scenario)
        # A step that began before `start` had looked would be taken for one that an earlier daemon left running.
        if self._recovered and scenario not in self._pumps and not self._stopping:
            self._pumps[scenario] = asyncio.create_task(self._pump(scenario), name=f"steps of {scenario}")

    def running_step(self, scenario: str) -> int | None:
        """The number of the step that runs in the scenario now."""
        found = self._running.get(scenario)
        return None if found is None else found.begun.number

    def phase(self, scenario: str, number: int) -> str | None:
        """`proposing`, `evaluating` or `settling` of a running step, None for one that does not run."""
        found = self._running.get(scenario)
        return found.progress if found is not None and found.begun.number == number else None

    async def cancel_step(self, scenario: str, number: int) -> None:
        """End a running step with everything it started; returns when it is settled as `cancelled`.

        Raises NotFound when it does not run, Conflict when it is already being settled.
        """
        found = self._running.get(scenario)
        if found is None or found.begun.number != number:
            raise NotFound(
                f"step {number} of {scenario!r} does not run", f"reef steps show {number} --scenario {scenario}"
            )
        await found.end("cancelled", "cancelled by the person")

    async def cancel_ask(self, ask: str) -> str:
        """Cancel an ask, queued or running; returns its state, `cancelled`.

        Raises NotFound for an unknown one, Conflict for one that is settled or being settled.
        """
        found = await self._home.writer.write(lambda conn: ledger.cancel_queued(conn, ask)) if is_id(ask) else None
        if found is None:
            raise NotFound(f"there is no ask {ask[:40]!r}", "reef asks list")
        scenario, state, step = found
        if state == "running" and step is not None:
            await self.cancel_step(scenario, step)
        elif state != "cancelled":
            ended = "is settled already" if state in ("published", "pending", "rejected", "skipped") else f"has {state}"
            raise Conflict(f"the ask cannot be cancelled, it {ended}", f"reef asks list --scenario {scenario}")
        return "cancelled"

    async def stop(self) -> None:
        """End every running step as failed, since the daemon stopped. Queued asks stay queued for the next start."""
        self._stopping = True
        for found in list(self._running.values()):
            with contextlib.suppress(Conflict):
                await found.end("failed", STOPPED)
        pumps = list(self._pumps.values())
        if pumps:
            await asyncio.wait(pumps, timeout=10)
        for pump in pumps:
            pump.cancel()

    async def _pump(self, scenario: str) -> None:
        try:
            while not self._stopping:
                self._again.discard(scenario)
                try:
                    async with self._room:
                        worked = not self._stopping and await self._one(scenario)
                except RecordingFailed as error:
                    log.error("the steps of %s wait for the record store: %s", scenario, error.message)
                    await asyncio.sleep(_RETRY_S)
                    continue
                if not worked and scenario not in self._again:
                    return
        finally:
            self._pumps.pop(scenario, None)

    async def _one(self, scenario: str) -> bool:
        """Run the step of the next ask; False when there is none. Raises RecordingFailed only before it begins."""
        facts = await self._home.writer.write(lambda conn: ledger.scenario_facts(conn, scenario))
        begun = None if facts is None else await self._home.writer.write(lambda conn: ledger.begin(conn, facts))
        if facts is None or begun is None:
            return False
        attempt = self._running[scenario] = Attempt(self._home, begun, facts)
        try:
            await self._settle(attempt, await attempt.run())
        finally:
            del self._running[scenario]
            attempt.over.set()
        return True

    async def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Write the end of a step, trying again while the store cannot be written. A published one is settled."""
        step = attempt.begun
        while True:
            try:
                settled = await self._home.writer.write(
                    lambda conn: ledger.settle(
                        conn, step.scenario, step.number, outcome.state, outcome.reason, outcome.fields
                    )
                )
                if settled:
                    return
                # The store failed in the middle of a publication, which is finished or undone like after a restart.
                await self._home.publisher.recover()
            except RecordingFailed as error:
                if self._stopping:
                    # The next start finds the row running and settles it.
                    return
                log.error("step %s of %s waits for the record store: %s", step.number, step.scenario, error.message)
                await asyncio.sleep(_RETRY_S)
