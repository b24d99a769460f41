"""Which version each scenario serves now, known without a look into the database.

Every publication goes through this one object, so a call that is answered after a publication carries the new release.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from reef.versions import catalog
from reef.versions.catalog import Rows, Version
from reef.versions.publish import Proposal, Publisher, Writer
from reef.versions.repository import Repository, VersionsDamaged


class ServedVersions(Publisher):
    """A publisher that remembers the heads."""

    def __init__(self, writer: Writer, repository: Repository, rows: Rows) -> None:
        super().__init__(writer, repository, rows)
        self._heads: dict[str, Version] = {}
        self._broken: dict[str, str] = {}
        """Release to why the repository does not give it."""

    async def load(self) -> None:
        """Read the head of every scenario; called once, at start."""
        self._heads = {version.scenario: version for version in await self._writer.write(_heads)}

    def head_now(self, scenario: str) -> Version | None:
        """The version that `scenario` serves, None before its base."""
        return self._heads.get(scenario)

    def problem_now(self, scenario: str) -> str | None:
        """Why what `scenario` serves cannot be had from the repository, None when it can or was not looked at."""
        head = self._heads.get(scenario)
        return None if head is None else self._broken.get(head.release_id)

    def require(self, scenario: str) -> None:
        """Raises VersionsDamaged when what `scenario` serves cannot be had."""
        problem = self.problem_now(scenario)
        if problem is not None:
            raise VersionsDamaged(
                f"the versions of scenario {scenario!r} are broken: {problem};"
                " put versions.git and reef.db back from one backup, or go back to an older version",
                f"reef versions list --scenario {scenario}",
            )

    async def look(self, scenario: str) -> str | None:
        """Find out whether what `scenario` serves can be had; the sentence of `problem_now`."""
        found = await self.broken(scenario)
        head = self._heads.get(scenario)
        if head is not None:
            self._broken.pop(head.release_id, None)
            if found is not None:
                self._broken[head.release_id] = found
        return found

    async def create_base(
        self, scenario: str, files: Mapping[str, bytes], summary: str = "the base of this scenario"
    ) -> Version:
        return self._seen(await super().create_base(scenario, files, summary))

    async def publish(self, proposal: Proposal) -> Version:
        return self._seen(await super().publish(proposal))

    async def rollback(self, scenario: str, target: str | int, expected_head: str | int | None = None) -> Version:
        return self._seen(await super().rollback(scenario, target, expected_head))

    async def promote(self, scenario: str, target: str | int, expected_head: str | int | None = None) -> Version:
        return self._seen(await super().promote(scenario, target, expected_head))

    async def recover(self) -> list[str]:
        done = await super().recover()
        await self.load()
        return done

    def _seen(self, version: Version) -> Version:
        known = self._heads.get(version.scenario)
        if version.state == "published" and (known is None or known.number < version.number):
            self._heads[version.scenario] = version
        return version


def _heads(conn: sqlite3.Connection) -> list[Version]:
    names = conn.execute("SELECT DISTINCT scenario FROM versions").fetchall()
    return [head for (name,) in names if (head := catalog.head(conn, name)) is not None]
