"""A database and a repository of versions of which one was lost, damaged or put back from another day."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reef.config import load
from reef.daemon.belonging import find_broken, refuse_other_database
from reef.daemon.scenarios import Scenarios
from reef.daemon.served import ServedVersions
from reef.errors import Failed
from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal
from reef.versions.repository import Repository, VersionsDamaged


@dataclass
class Rooms:
    """What a start opens of a home."""

    paths: Paths
    writer: Writer
    repository: Repository
    publisher: ServedVersions
    scenarios: Scenarios

    @classmethod
    async def open(cls, paths: Paths) -> Rooms:
        writer, repository = Writer(paths.database), Repository(paths.versions_git)
        repository.ensure()
        publisher = ServedVersions(writer, repository, rows)
        await publisher.load()
        scenarios = Scenarios(writer, publisher, load(paths=paths).settings, paths, lambda spec: None)
        await scenarios.load()
        return cls(paths, writer, repository, publisher, scenarios)

    async def again(self) -> Rooms:
        """The next start of the same home."""
        self.writer.close()
        return await Rooms.open(self.paths)

    async def problem(self) -> str | None:
        """What the start finds of scenario `default`."""
        await find_broken(self.scenarios, self.publisher, self.repository)
        return self.publisher.problem_now("default")

    def object(self, sha: str) -> Path:
        return self.repository.path / "objects" / sha[:2] / sha[2:]


@pytest.fixture
async def first(paths: Paths) -> AsyncIterator[Rooms]:
    """A home with the scenario `default` and its base."""
    found = await Rooms.open(paths)
    await refuse_other_database(found.scenarios, found.repository, paths)
    await found.scenarios.create("default")
    yield found
    found.writer.close()


async def test_a_home_that_is_whole_has_no_problem(first: Rooms) -> None:
    assert await first.problem() is None
    first.publisher.require("default")


async def test_a_database_that_lost_everything_is_refused_beside_its_versions(first: Rooms) -> None:
    first.writer.close()
    first.paths.database.write_bytes(b"")
    (first.paths.data / "reef.db.schema-1").touch()
    emptied = await Rooms.open(first.paths)
    with pytest.raises(
        Failed, match=r"holds no scenario, but versions\.git beside it holds versions of default"
    ) as lost:
        await refuse_other_database(emptied.scenarios, emptied.repository, first.paths)
    emptied.writer.close()
    assert "reef.db.schema-1" in lost.value.message
    assert lost.value.hint == f"mv {first.paths.versions_git} {first.paths.versions_git}.old && reef up"


async def test_a_repository_that_is_gone_breaks_every_scenario_and_is_said(first: Rooms) -> None:
    shutil.rmtree(first.repository.path)
    found = await first.again()
    problem = await found.problem()
    assert problem is not None and "v1 cannot be read: there is no commit" in problem
    with pytest.raises(
        VersionsDamaged, match="the versions of scenario 'default' are broken: v1 cannot be read"
    ) as said:
        found.publisher.require("default")
    assert said.value.hint == "reef versions list --scenario default"
    found.writer.close()


@pytest.mark.parametrize("part", ["commit", "file"])
async def test_an_object_that_is_damaged_is_found_and_named(first: Rooms, part: str) -> None:
    release = (await first.publisher.head("default")).release_id
    sha = release if part == "commit" else next(iter(first.repository.listing(release).values()))
    first.object(sha).chmod(0o600)
    first.object(sha).write_bytes(first.object(sha).read_bytes()[:-4] + b"junk")
    problem = await first.problem()
    assert problem is not None and f"the object {sha[:12]} of {first.repository.path} is damaged" in problem


async def test_going_back_to_a_version_that_is_whole_mends_a_scenario(first: Rooms) -> None:
    base = await first.publisher.head("default")
    proposal = Proposal("default", {"harness/rules/a.md": b"be brief"}, base.release_id, "brief")
    broken = await first.publisher.publish(proposal)
    blob = first.repository.listing(broken.release_id)["harness/rules/a.md"]
    first.object(blob).unlink()
    assert await first.problem() is not None
    await first.publisher.rollback("default", 1)
    assert first.publisher.problem_now("default") is None
    assert await first.problem() is None


async def test_a_branch_that_is_gone_is_put_back_and_one_that_is_elsewhere_is_left(first: Rooms) -> None:
    base = await first.publisher.head("default")
    shutil.rmtree(first.repository.path / "refs")
    found = await first.again()
    assert await found.problem() is None
    assert found.repository.head("default") == base.release_id
    other = found.repository.commit({"harness/rules/a.md": b"x"}, {"number": 2}, base.release_id)
    found.repository.advance("default", other, base.release_id)
    problem = await found.problem()
    assert problem == f"its branch is at {other[:12]}, but v1 ({base.release_id[:12]}) is served"
    assert found.repository.head("default") == other
    found.writer.close()


async def test_a_repository_that_git_cannot_read_is_said_of_each_scenario(first: Rooms) -> None:
    (first.repository.path / "config").write_text("[[[\n")
    problem = await first.problem()
    assert problem is not None and problem.startswith("its branch cannot be read: ")
