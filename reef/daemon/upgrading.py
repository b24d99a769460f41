"""Built-in entries of an older package become those of this one, as a new version of every scenario that holds them.

It is done at start, and before what an install or a promotion serves. A version of this kind waits for nobody: what
reef ships is the base and not a change. A pending version is still promoted afterwards, and is then brought up to date
in the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from reef import __version__
from reef.daemon.scenarios import Scenarios
from reef.daemon.served import ServedVersions
from reef.errors import ReefError
from reef.harness.adapter import bases, together
from reef.harness.builtins import Renewal, fingerprints, renew
from reef.harness.tree import PREFIX, Tree
from reef.paths import Paths
from reef.records.writer import RecordingFailed
from reef.versions import catalog
from reef.versions.catalog import Version
from reef.versions.publish import Proposal, Writer
from reef.versions.repository import Repository

log = logging.getLogger("reef.daemon")
SHIPPED = "shipped"
"""The fact of an upgrade that names every built-in entry of its package, with its hash."""


def renewal(repository: Repository, head: Version, history: Iterable[Version], shipped: Mapping[str, Tree]) -> Renewal:
    """What the built-in entries of `head` become, by those that are `shipped` for each agent. Reads the repository.

    `history` are the versions of the scenario that brought built-in entries (`catalog.bases`).
    """
    known: dict[str, set[str]] = {}
    for version in history:
        told = repository.facts(version.release_id).get(SHIPPED)
        if not isinstance(told, dict):
            told = fingerprints(Tree.from_files(repository.files(version.release_id, PREFIX)))
        for name, fingerprint in told.items():
            known.setdefault(name, set()).add(str(fingerprint))
    tree = Tree.from_files(repository.files(head.release_id, PREFIX))
    return renew(tree, together(shipped), known, shipped)


class Upgrading:
    """Brings the built-in entries of scenarios up to date."""

    def __init__(
        self,
        paths: Paths,
        writer: Writer,
        repository: Repository,
        publisher: ServedVersions,
        scenarios: Scenarios,
        running_step: Callable[[str], int | None],
    ) -> None:
        """`running_step` tells the number of the step that runs in a scenario: its head must stay where it is."""
        self._paths = paths
        self._writer = writer
        self._repository = repository
        self._publisher = publisher
        self._scenarios = scenarios
        self._running_step = running_step
        self._fine: dict[str, dict[str, str]] = {}
        """Content to the built-in entries that it was found to hold, and no other."""
        self._told: set[tuple[str, tuple[str, ...]]] = set()

    async def all(self) -> None:
        """Upgrade every scenario that is in use; one that cannot be is named in the log."""
        shipped = await asyncio.to_thread(bases, self._paths)
        for scenario in self._scenarios.all():
            if scenario.ready and not scenario.archived and self._publisher.problem_now(scenario.name) is None:
                await self._try(scenario.name, shipped)

    async def one(self, scenario: str) -> Version | None:
        """Upgrade one scenario; the new version, or None when there is nothing to do, or when it cannot be done now.

        What keeps it from being done is in the log, and the next start tries again.
        """
        return await self._try(scenario, await asyncio.to_thread(bases, self._paths))

    async def promote(self, scenario: str, target: str | int, expected_head: str | int | None) -> Version:
        """Promote a pending version, with the built-in entries of now; the version that is served then."""
        promoted = await self._publisher.promote(scenario, target, expected_head)
        return await self.one(scenario) or promoted

    async def _try(self, scenario: str, shipped: Mapping[str, Tree]) -> Version | None:
        try:
            return await self._one(scenario, shipped)
        except RecordingFailed:
            raise
        except ReefError as error:
            log.warning("the built-in entries of scenario %s stay as they are: %s", scenario, error.message)
            return None

    async def _one(self, scenario: str, shipped: Mapping[str, Tree]) -> Version | None:
        head = self._publisher.head_now(scenario)
        fits = fingerprints(together(shipped))
        # Most scenarios have the same base: what was looked at once need not be read again.
        if head is None or self._fine.get(head.content_id) == fits or self._running_step(scenario) is not None:
            return None
        history = await self._writer.write(lambda conn: catalog.bases(conn, scenario), essential=False)
        found = await asyncio.to_thread(renewal, self._repository, head, history, shipped)
        self._tell_kept(scenario, found)
        if not found.reason:
            if fingerprints(found.tree) == fits:
                self._fine[head.content_id] = fits
            return None
        version = await self._publisher.publish(
            Proposal(
                scenario, dict(found.tree.to_files()), head.release_id,
                f"built-in entries of reef {__version__}: {found.reason}",
                operation="upgrade", facts={SHIPPED: fits},
            )
        )  # fmt: skip
        log.info("scenario %s has the built-in entries of reef %s in v%d", scenario, __version__, version.number)
        return version

    def _tell_kept(self, scenario: str, found: Renewal) -> None:
        if found.kept and (scenario, found.kept) not in self._told:
            self._told.add((scenario, found.kept))
            log.warning("scenario %s: built-in entries that were edited are kept: %s", scenario, ", ".join(found.kept))
