"""What the doctor says of versions: whole, torn apart, damaged, and with built-in entries that were edited."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from reef.daemon.served import ServedVersions
from reef.doctor import versions
from reef.doctor.check import Check
from reef.harness.adapter import base_of_all
from reef.harness.builtins import built_in
from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions import large
from reef.versions.catalog import Version
from reef.versions.publish import Proposal
from reef.versions.repository import Repository

WEIGHTS = "weights/adapter_model.safetensors"


@dataclass
class Rooms:
    """A home with the scenario `s`, whose base is what reef ships."""

    paths: Paths
    writer: Writer
    repository: Repository
    publisher: ServedVersions
    head: Version

    def checks(self) -> dict[str, Check]:
        return {found.name: found for found in versions.check(self.paths)}


@pytest.fixture
async def rooms(paths: Paths) -> AsyncIterator[Rooms]:
    writer, repository = Writer(paths.database), Repository(paths.versions_git)
    repository.ensure()
    publisher = ServedVersions(writer, repository, rows)
    await writer.write(
        lambda conn: rows.add_scenario(conn, "s", recipe="reefine", adapter="pi", engine=None, config={}, state="ready")
    )
    head = await publisher.create_base("s", base_of_all(paths).to_files())
    yield Rooms(paths, writer, repository, publisher, head)
    writer.close()


def test_a_home_without_versions_has_nothing_to_say(paths: Paths) -> None:
    assert list(versions.check(paths)) == []
    Writer(paths.database).close()
    assert [(found.name, found.state) for found in versions.check(paths)] == [("versions", "ok")]


def test_whole_versions_are_told_as_whole(rooms: Rooms) -> None:
    found = rooms.checks()
    assert {name: check.state for name, check in found.items()} == {"versions": "ok", "git": "ok", "built-in": "ok"}


async def test_a_branch_that_went_elsewhere_is_named_with_both(rooms: Rooms) -> None:
    other = rooms.repository.commit({"harness/rules/x.md": b"x"}, {"number": 9}, rooms.head.release_id, "by hand")
    rooms.repository.advance("s", other, rooms.head.release_id)
    found = rooms.checks()["versions"]
    assert (found.state, found.hint) == ("bad", "reef restore FILE")
    assert found.sentence == f"scenario s: its branch is at {other[:12]}, but v1 is served"


async def test_a_large_file_that_is_gone_is_found_before_an_engine_wants_it(rooms: Rooms) -> None:
    proposal = Proposal("s", {WEIGHTS: b"weights"}, rooms.head.release_id, "weights", changes=("weights",))
    version = await rooms.publisher.publish(proposal)
    large.locate(rooms.repository.path, rooms.repository.files(version.release_id)[WEIGHTS]).unlink()
    found = rooms.checks()["versions"]
    assert found.state == "bad" and "v2 is not whole: the large file" in found.sentence


def test_a_damaged_object_is_found_by_git(rooms: Rooms) -> None:
    blob = next(iter(rooms.repository.listing(rooms.head.release_id).values()))
    file = rooms.repository.path / "objects" / blob[:2] / blob[2:]
    file.chmod(0o600)
    file.write_bytes(b"nonsense")
    found = rooms.checks()
    assert (found["git"].state, found["versions"].state) == ("bad", "bad")


async def test_a_built_in_entry_that_was_edited_is_named(rooms: Rooms) -> None:
    entry = built_in(base_of_all(rooms.paths))[0]
    path = next(iter(entry.to_files()))
    edited = {path: b"---\nname: edited\ndescription: by hand\n---\nedited by hand\n"}
    files = dict(rooms.repository.files(rooms.head.release_id)) | edited
    await rooms.publisher.publish(Proposal("s", dict(files), rooms.head.release_id, "by hand"))
    found = rooms.checks()["built-in"]
    assert (found.state, found.hint) == ("warn", "reef versions diff base v2 -s s")
    assert f"s: {entry.id}" in found.sentence


def test_a_version_that_a_stop_left_is_named_as_unfinished(rooms: Rooms) -> None:
    def leave(conn):  # type: ignore[no-untyped-def]
        rows.add_version(
            conn, "s", 2, release_id=rooms.head.release_id, content_id=rooms.head.content_id, operation="training",
            state="publishing",
        )  # fmt: skip

    rooms.writer.submit(leave).result()
    found = rooms.checks()["versions"]
    assert (found.state, found.hint) == ("warn", "reef up")


def test_a_lost_repository_is_named(rooms: Rooms) -> None:
    shutil.rmtree(rooms.repository.path)
    (found,) = versions.check(rooms.paths)
    assert found.state == "bad" and "versions.git is gone, and 1 scenario have their versions in it" in found.sentence
