"""Publication: the one order in which a version comes to be, and how a broken-off one is finished.

    git objects → transaction (version row `publishing`, step row) → ref → transaction (`published` or `pending`)

A version is never half published: a row that is `publishing` at start is finished when the branch is still at its
parent or already at itself, else it is marked `conflict` and its asks are queued again. Going back and promoting
publish old content as a new version. Only the daemon calls this; every public method is safe to call at any time.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from reef.errors import Conflict, InvalidInput, NotFound, ReefError
from reef.ids import utc_now
from reef.versions import catalog
from reef.versions.catalog import Rows, Version
from reef.versions.repository import Repository

T = TypeVar("T")
log = logging.getLogger("reef.versions")


class Writer(Protocol):
    """The one writer of the database."""

    async def write(self, op: Callable[[sqlite3.Connection], T], /, *, essential: bool = True) -> T:
        """Run `op` in a transaction of its own and return what it returned, after the commit.

        `essential=False` is for what loses nothing when it cannot be written.
        """
        ...


@dataclass(frozen=True)
class Proposal:
    """A candidate that the decision let through."""

    scenario: str
    files: Mapping[str, bytes | Path]
    """The whole content of the components that changed: path to bytes, or to a large file on disk."""
    parent: str | None
    """Release that it was made from; publishing fails with Conflict when the head is another."""
    summary: str
    step: int | None = None
    pending: bool = False
    """Whether it waits for the person instead of being served."""
    requires: Sequence[Mapping[str, Any]] = ()
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    """`{"policy", "groups": [...]}` as the step row has it."""
    changes: Sequence[str] = ("harness",)
    """The components (top-level folders) that the step made. Every other one of `parent` is carried by its tree id."""
    operation: str = "training"
    facts: Mapping[str, Any] = field(default_factory=dict)
    """More facts for the commit."""
    step_fields: Mapping[str, Any] = field(default_factory=dict)
    """More columns of the step row (`consumed_json`, …), written with the version row."""


class Publisher:
    """Makes versions. One publication a scenario at a time; others wait."""

    def __init__(self, writer: Writer, repository: Repository, rows: Rows) -> None:
        """`rows` are the insert and update operations of the records room (the module `reef.records.rows`)."""
        self._writer = writer
        self._repository = repository
        self._rows = rows
        self._turns: dict[str, asyncio.Lock] = {}

    async def create_base(
        self, scenario: str, files: Mapping[str, bytes], summary: str = "the base of this scenario"
    ) -> Version:
        """Publish v1. Idempotent: an existing v1 is returned, one that was broken off or refused is finished."""
        async with self._turn(scenario):
            known = await self._writer.write(lambda conn: catalog.version(conn, scenario, number=1))
            if known is not None:
                # A base that a held lock refused is marked, and there is no other version that could be served.
                return known if known.state == "published" else await self._finish(known)
            return await self._publish(Proposal(scenario, dict(files), None, summary, operation="base"))

    async def publish(self, proposal: Proposal) -> Version:
        """Publish a candidate, or keep it as `pending`. Raises Conflict when the head is not its parent any more."""
        async with self._turn(proposal.scenario):
            return await self._publish(proposal)

    async def rollback(self, scenario: str, target: str | int, expected_head: str | int | None = None) -> Version:
        """Publish the content of `target` (a number, `v3` or a release id) as a new version.

        Raises NotFound, Conflict when `expected_head` is not the head, InvalidInput when the target is no published
        version or is the head itself.
        """
        async with self._turn(scenario):
            head, wanted = await self._choose(scenario, target, expected_head)
            if wanted.state == "pending":
                raise InvalidInput(
                    f"v{wanted.number} of {scenario!r} is pending and was never served",
                    f"reef versions promote v{wanted.number} --scenario {scenario}",
                )
            if wanted.content_id == head.content_id:
                raise InvalidInput(
                    f"v{wanted.number} of {scenario!r} has the content that is served now", "reef versions list"
                )
            return await self._again(wanted, head, "rollback", f"back to v{wanted.number}")

    async def promote(self, scenario: str, target: str | int, expected_head: str | int | None = None) -> Version:
        """Publish the content of a pending version as a new version, with the person's yes.

        Raises Conflict also when the head has moved on since the pending version was made, not only by an upgrade of
        what reef ships, and `expected_head` does not say that the person knows.
        """
        async with self._turn(scenario):
            head, wanted = await self._choose(scenario, target, expected_head)
            if wanted.state != "pending":
                raise InvalidInput(
                    f"v{wanted.number} of {scenario!r} is not pending, and only a pending version is promoted",
                    f"reef versions rollback v{wanted.number} --scenario {scenario}",
                )
            is_late = not await self._writer.write(lambda conn: catalog.only_upgraded(conn, head, wanted.parent))
            if is_late and expected_head is None:
                raise Conflict(
                    f"v{wanted.number} was made from an older version, and v{head.number} is served now",
                    f"reef versions diff v{head.number} v{wanted.number} --scenario {scenario}",
                )
            return await self._again(wanted, head, "promote", wanted.summary)

    async def head(self, scenario: str) -> Version:
        """The version that is served. Raises NotFound before the base is there."""
        found = await self._writer.write(lambda conn: catalog.head(conn, scenario))
        if found is None:
            raise NotFound(f"scenario {scenario!r} has no version yet", "reef scenarios list")
        return found

    async def recover(self) -> list[str]:
        """Finish every row that is still `publishing`; returns one sentence a row. Called once, at start."""
        done = []
        # Only a question, which is asked again until the store answers: a failure loses nothing.
        for row in await self._writer.write(catalog.unfinished, essential=False):
            async with self._turn(row.scenario):
                try:
                    settled = await self._finish(row)
                    done.append(f"finished v{settled.number} of {row.scenario!r} ({settled.state})")
                except ReefError as error:
                    done.append(f"v{row.number} of {row.scenario!r} could not be finished: {error.message}")
        return done

    async def broken(self, scenario: str) -> str | None:
        """Why what `scenario` serves cannot be had from the repository, as a sentence; None when it can.

        A branch that is gone is put back, since the catalog knows where it was.
        """
        async with self._turn(scenario):
            found = await self._writer.write(lambda conn: catalog.head(conn, scenario))
            return None if found is None else await asyncio.to_thread(self._lacking, found)

    def _lacking(self, head: Version) -> str | None:
        try:
            self._repository.files(head.release_id)
        except ReefError as error:
            return f"v{head.number} cannot be read: {error.message}"
        try:
            at = self._repository.head(head.scenario)
            if at is None:
                self._repository.advance(head.scenario, head.release_id, None)
                log.warning("the branch of %s was gone and is at v%s again", head.scenario, head.number)
        except ReefError as error:
            return f"its branch cannot be read: {error.message}"
        if at not in (None, head.release_id):
            return f"its branch is at {str(at)[:12]}, but v{head.number} ({head.release_id[:12]}) is served"
        return None

    def _turn(self, scenario: str) -> asyncio.Lock:
        return self._turns.setdefault(scenario, asyncio.Lock())

    async def _choose(self, scenario: str, target: str | int, expected: str | int | None) -> tuple[Version, Version]:
        head = await self.head(scenario)
        if expected is not None:
            wanted_head = await self._find(scenario, expected)
            if wanted_head.release_id != head.release_id:
                raise Conflict(
                    f"v{wanted_head.number} was expected to be served, but v{head.number} is", "reef versions list"
                )
        return head, await self._find(scenario, target)

    async def _find(self, scenario: str, name: str | int) -> Version:
        found = await self._writer.write(lambda conn: catalog.find(conn, scenario, name))
        if found.state in ("publishing", "conflict"):
            raise InvalidInput(f"v{found.number} of {scenario!r} is {found.state}", "reef versions list")
        return found

    async def _again(self, source: Version, head: Version, operation: str, summary: str) -> Version:
        number = await self._writer.write(lambda conn: catalog.next_number(conn, source.scenario))
        facts = {
            "scenario": source.scenario,
            "number": number,
            "parent": head.release_id,
            "operation": operation,
            "source": source.release_id,
            "requires": list(source.requires),
        }
        release = await asyncio.to_thread(
            self._repository.republish, source.release_id, facts, head.release_id, f"v{number}: {summary}"
        )
        row = catalog.Draft(
            scenario=source.scenario,
            number=number,
            release_id=release,
            content_id=source.content_id,
            parent=head.release_id,
            operation=operation,
            summary=summary,
            components=source.components,
            requires=source.requires,
            evaluation=source.evaluation,
        )
        version = await self._writer.write(lambda conn: catalog.open_version(conn, self._rows, row, {}))
        return await self._finish(version)

    async def _publish(self, proposal: Proposal) -> Version:
        scenario = proposal.scenario
        number = await self._writer.write(lambda conn: catalog.next_number(conn, scenario))
        facts = {
            "scenario": scenario,
            "number": number,
            "parent": proposal.parent,
            "step": proposal.step,
            "operation": proposal.operation,
            "pending": proposal.pending,
            "requires": list(proposal.requires),
            "evaluation": _digest(proposal.evaluation),
            "created_at": utc_now(),
            **proposal.facts,
        }

        def make() -> tuple[str, str, dict[str, str]]:
            release = self._repository.commit(
                proposal.files, facts, proposal.parent, f"v{number}: {proposal.summary}", proposal.changes
            )
            return release, self._repository.content_id(release), self._repository.components(release)

        release, content, components = await asyncio.to_thread(make)
        row = catalog.Draft(
            scenario=scenario,
            number=number,
            release_id=release,
            content_id=content,
            parent=proposal.parent,
            step=proposal.step,
            operation=proposal.operation,
            summary=proposal.summary,
            components=[{"name": name, "content_id": tree} for name, tree in sorted(components.items())],
            requires=proposal.requires,
            evaluation=proposal.evaluation,
        )
        version = await self._writer.write(
            lambda conn: catalog.open_version(conn, self._rows, row, proposal.step_fields)
        )
        return await self._finish(version)

    async def _finish(self, version: Version) -> Version:
        """Set the ref of a `publishing` row and settle it; when that fails, mark the row and raise."""

        def point() -> str:
            if self._repository.facts(version.release_id).get("pending"):
                self._repository.keep_pending(version.scenario, version.number, version.release_id)
                return "pending"
            self._repository.advance(version.scenario, version.release_id, version.parent)
            return "published"

        try:
            state = await asyncio.to_thread(point)
        except ReefError as error:
            reason = error.message
            await self._writer.write(lambda conn: catalog.mark_conflict(conn, self._rows, version, reason))
            raise
        return await self._writer.write(lambda conn: catalog.settle_version(conn, self._rows, version, state))


def _digest(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """What of an evaluation stands in the commit: the policy and one word a group."""
    groups = evaluation.get("groups") or []
    return {
        "policy": evaluation.get("policy"),
        "groups": {str(group.get("name")): group.get("status") for group in groups if isinstance(group, Mapping)},
    }
