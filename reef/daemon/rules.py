"""How many bytes of rules an agent is given with a version, beside the most that it reads of them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from reef.daemon.access import Bound
from reef.errors import ReefError
from reef.harness.adapter import load_adapter
from reef.harness.tree import Tree

if TYPE_CHECKING:
    from reef.daemon.house import House

log = logging.getLogger("reef.daemon")
Sizes = dict[str, int]
"""`bytes` of the version's rules together, and the `cap` of the agent."""


class RulesSizes:
    """Read once for each version and agent: neither changes while the daemon runs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], Sizes | None] = {}

    async def of(self, house: House, session: Bound) -> Sizes | None:
        """The sizes for an agent's session; None where its version or agent is not known."""
        if session.version is None or session.adapter is None:
            return None
        key = (session.scenario, session.version, session.adapter)
        if key not in self._known:
            try:
                self._known[key] = await self._read(house, *key)
            except ReefError as error:
                # A call is answered whether or not this can be said of it.
                log.warning("the rules of %s v%d for %s cannot be measured: %s", *key, error.message)
                self._known[key] = None
        return self._known[key]

    @staticmethod
    async def _read(house: House, scenario: str, number: int, adapter: str) -> Sizes:
        version = await house.reading(lambda reader: reader.version(scenario, number))
        files = await asyncio.to_thread(house.repository.files, version["release_id"], "harness")
        cap = load_adapter(adapter, house.paths).limits.rules_bytes
        return {"bytes": Tree.from_files(files).rules_bytes, "cap": cap}
