"""What is removed behind the calls: bodies over the limit, old events, and what a stop left of a forgetting.

Once a minute it looks whether the bodies have outgrown `records.max-bytes`; then it takes somewhat more than is too
much, so that the next look finds nothing to do. One thing is removed at a time, whoever asked for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from reef.config import Settings
from reef.daemon.forgetting import Forgetting
from reef.daemon.scenarios import Scenarios
from reef.errors import Conflict, ReefError
from reef.learning.inputs import MAX_REPORTS
from reef.learning.manifest import manifest
from reef.paths import Paths
from reef.records import retention
from reef.records.retention import Needs
from reef.records.schema import open_readonly
from reef.records.writer import Writer
from reef.versions.repository import Repository

log = logging.getLogger("reef.daemon")
Row = dict[str, Any]
Say = Callable[[str], None]

EVERY_S = 60.0
_DOWN_TO = 0.95
_EVENTS_EVERY_S = 3600.0


class Housekeeping:
    """All removing of one home."""

    def __init__(
        self, paths: Paths, writer: Writer, repository: Repository, scenarios: Scenarios, settings: Settings
    ) -> None:
        self._paths = paths
        self._writer = writer
        self._scenarios = scenarios
        self._max_bytes = settings.records.max_bytes
        self._alone = threading.Lock()
        self.forgetting = Forgetting(paths, writer, repository, self._alone)
        self._events_due = 0.0

    def prune(self, keep_bytes: int, say: Say) -> Row:
        """Prune to `keep_bytes` of bodies; blocks. Raises Conflict while something else is being removed."""
        if not self._alone.acquire(timeout=1):
            raise Conflict("records are being removed already", "reef status")
        try:
            say("looking for the oldest bodies")
            reading = open_readonly(self._paths.database)
            try:
                return retention.prune(reading, self._writer, keep_bytes, self._needs(), self.forgetting.turn)
            finally:
                reading.close()
        finally:
            self._alone.release()

    async def watch(self) -> None:
        """Keep house until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except ReefError as error:
                # A full disk or a reader in the way: the next look tries again.
                log.warning("what is to be removed waits: %s", error.message)
            await asyncio.sleep(EVERY_S)

    def look(self) -> None:
        """One look: what was broken off, what is too much, what is too old."""
        if self.forgetting.unfinished() and (done := self.forgetting.finish(log.info)) is not None:
            log.info("finished forgetting %d records", done["records"])
        held = retention.count(self._writer, self.forgetting.turn)
        if held > self._max_bytes:
            done = self.prune(int(self._max_bytes * _DOWN_TO), log.info)
            log.info("pruned the bodies of %d records, %d bytes", done["records"], done["bytes"])
        if time.monotonic() >= self._events_due:
            retention.prune_events(self._writer, self.forgetting.turn)
            self._events_due = time.monotonic() + _EVENTS_EVERY_S

    def stop(self) -> None:
        """Let what is running stop at its next slice."""
        self.forgetting.stop()

    def _needs(self) -> Needs:
        learning = set()
        for scenario in self._scenarios.all():
            try:
                if "reports" in manifest(scenario.recipe, self._paths).inputs:
                    learning.add(scenario.name)
            except ReefError:
                # A recipe that cannot be read now may want them when it can be again.
                learning.add(scenario.name)
        return Needs(frozenset(learning), MAX_REPORTS)
