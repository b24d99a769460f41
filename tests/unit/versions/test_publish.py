"""Publication: the order, the rows, and what a stop at any point leaves behind."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from reef.errors import Conflict, InvalidInput, NotFound, Unavailable
from reef.paths import Paths
from reef.records import rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from reef.versions import catalog
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository

T = TypeVar("T")
BASE = {"harness/rules/base.md": b"base\n"}


def change(parent: str, text: bytes = b"new", **more: Any) -> Proposal:
    return Proposal("s", {**BASE, "harness/rules/new.md": text}, parent, "a new rule", **more)


async def running_step(writer: Writer, text: str = "do it") -> tuple[int, str]:
    """A step that runs for one ask: (step number, ask id)."""

    def write(conn: sqlite3.Connection) -> tuple[int, str]:
        ask, _, _ = rows.add_ask(conn, "s", text)
        step = rows.add_step(conn, "s", recipe="reefine", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        return step, ask

    return await writer.write(write)


def states(reader: Reader) -> list[tuple[int, str, str]]:
    return [(row["version"], row["operation"], row["state"]) for row in reversed(reader.versions("s"))]


@pytest.fixture
def reader(paths: Paths, writer: Writer) -> Reader:
    return Reader(paths.database)


async def test_a_scenario_has_its_base_from_the_first_moment_and_only_once(
    publisher: Publisher, repository: Repository, reader: Reader
) -> None:
    first = await publisher.create_base("s", BASE)
    again = await publisher.create_base("s", {"harness/rules/other.md": b"x"})
    assert again == first
    assert (first.number, first.operation, first.parent) == (1, "base", None)
    assert repository.head("s") == first.release_id
    assert repository.files(first.release_id) == BASE
    assert first.components == [{"name": "harness", "content_id": repository.components(first.release_id)["harness"]}]
    assert states(reader) == [(1, "base", "published")]


async def test_a_published_step_settles_its_row_and_its_ask_and_tells_it(
    publisher: Publisher, repository: Repository, writer: Writer, reader: Reader
) -> None:
    base = await publisher.create_base("s", BASE)
    step, ask = await running_step(writer)
    evaluation = {"policy": "reach", "groups": [{"name": "reach", "status": "pass", "detail": "seen"}]}
    version = await publisher.publish(
        change(base.release_id, step=step, evaluation=evaluation, step_fields={"consumed": [ask], "reason": "fine"})
    )
    assert (version.number, version.state) == (2, "published")
    facts = repository.facts(version.release_id)
    assert facts["parent"] == base.release_id and facts["step"] == step
    assert facts["evaluation"] == {"policy": "reach", "groups": {"reach": "pass"}}
    row = reader.step("s", step)
    assert (row["state"], row["version"], row["candidate"]) == ("published", 2, version.release_id)
    assert row["consumed"] == [ask] and row["ended_at"]
    asked = reader.ask(ask)
    assert (asked["state"], asked["version"]) == ("published", 2) and asked["settled_at"]
    kinds = [event["kind"] for event in reader.events()]
    assert kinds[-4:] == ["version_published", "head_moved", "step_ended", "ask_changed"]


async def test_code_waits_for_the_person_and_the_head_stays(
    publisher: Publisher, repository: Repository, writer: Writer, reader: Reader
) -> None:
    base = await publisher.create_base("s", BASE)
    step, ask = await running_step(writer)
    pending = await publisher.publish(change(base.release_id, pending=True, step=step))
    assert pending.state == "pending"
    assert (await publisher.head("s")).number == 1
    assert repository.head("s") == base.release_id
    assert reader.ask(ask)["state"] == "pending"
    promoted = await publisher.promote("s", "v2")
    assert (promoted.number, promoted.operation, promoted.content_id) == (3, "promote", pending.content_id)
    assert repository.head("s") == promoted.release_id
    assert states(reader) == [(1, "base", "published"), (2, "training", "published"), (3, "promote", "published")]
    with pytest.raises(InvalidInput):
        await publisher.promote("s", "v2")


async def test_going_back_is_a_new_version_and_nothing_is_rewritten(
    publisher: Publisher, repository: Repository, git: Callable[..., str]
) -> None:
    first = await publisher.create_base("s", BASE)
    second = await publisher.publish(change(first.release_id, b"2"))
    third = await publisher.publish(change(second.release_id, b"3"))
    back = await publisher.rollback("s", 1)
    assert (back.number, back.content_id, back.parent) == (4, first.content_id, third.release_id)
    fifth = await publisher.publish(change(back.release_id, b"5"))
    assert (fifth.number, fifth.parent) == (5, back.release_id)
    assert git("rev-list", "--reverse", "s").split() == [
        version.release_id for version in (first, second, third, back, fifth)
    ]
    assert repository.files(second.release_id)["harness/rules/new.md"] == b"2"
    assert (await publisher.rollback("s", third.release_id)).content_id == third.content_id


async def test_a_return_that_cannot_be_meant_is_refused(publisher: Publisher) -> None:
    base = await publisher.create_base("s", BASE)
    second = await publisher.publish(change(base.release_id))
    for target, error in (("v2", InvalidInput), ("v9", NotFound), ("nonsense", InvalidInput), ("f" * 40, NotFound)):
        with pytest.raises(error):
            await publisher.rollback("s", target)
    with pytest.raises(NotFound):
        await publisher.rollback("other", "v1")
    assert (await publisher.head("s")) == second


async def test_a_lost_race_names_both_versions(publisher: Publisher) -> None:
    base = await publisher.create_base("s", BASE)
    await publisher.publish(change(base.release_id))
    with pytest.raises(Conflict, match=r"v1 was expected to be served, but v2 is"):
        await publisher.rollback("s", "v1", expected_head="v1")
    await publisher.rollback("s", "v1", expected_head="v2")


async def test_a_pending_version_of_an_older_head_needs_the_person_to_say_so(publisher: Publisher) -> None:
    base = await publisher.create_base("s", BASE)
    await publisher.publish(change(base.release_id, b"waits", pending=True))
    served = await publisher.publish(change(base.release_id, b"served"))
    with pytest.raises(Conflict, match="v3 is served now"):
        await publisher.promote("s", "v2")
    promoted = await publisher.promote("s", "v2", expected_head=served.release_id)
    assert promoted.number == 4


async def test_a_candidate_of_an_older_head_is_not_published_and_its_ask_is_queued_once_more(
    publisher: Publisher, writer: Writer, reader: Reader
) -> None:
    base = await publisher.create_base("s", BASE)
    step, ask = await running_step(writer)
    await publisher.publish(change(base.release_id, b"first"))
    with pytest.raises(Conflict):
        await publisher.publish(change(base.release_id, b"late", step=step, step_fields={"consumed": [ask]}))
    assert states(reader)[-1] == (3, "training", "conflict")
    assert reader.step("s", step)["state"] == "failed"
    assert (reader.ask(ask)["state"], reader.ask(ask)["step"]) == ("queued", None)

    def again(conn: sqlite3.Connection) -> int:
        step = rows.add_step(conn, "s", recipe="reefine", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        return step

    step = await writer.write(again)
    with pytest.raises(Conflict):
        await publisher.publish(change(base.release_id, b"late again", step=step))
    assert reader.ask(ask)["state"] == "failed"
    assert (await publisher.head("s")).number == 2


async def test_a_held_lock_refuses_the_publication_and_leaves_the_head(
    publisher: Publisher, repository: Repository, reader: Reader
) -> None:
    base = await publisher.create_base("s", BASE)
    lock = repository.path / "index.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(lock)!r}, 'w'); print('held', flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdin is not None
    holder.stdout.readline()
    try:
        with pytest.raises(Unavailable):
            await publisher.publish(change(base.release_id))
    finally:
        holder.communicate(b"\n")
    assert states(reader) == [(1, "base", "published"), (2, "training", "conflict")]
    assert (await publisher.publish(change(base.release_id))).number == 3


async def test_publications_of_one_scenario_take_turns(publisher: Publisher, reader: Reader) -> None:
    base = await publisher.create_base("s", BASE)
    outcomes = await asyncio.gather(
        *(publisher.publish(change(base.release_id, b"%d" % n)) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, catalog.Version) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 4
    assert [state for _, _, state in states(reader)].count("published") == 2


async def test_scenarios_do_not_disturb_each_other(publisher: Publisher, repository: Repository) -> None:
    names = [f"s{n}" for n in range(6)]
    made = await asyncio.gather(*(publisher.create_base(name, BASE) for name in names))
    assert {version.number for version in made} == {1}
    assert len({version.release_id for version in made}) == 6
    assert [repository.head(name) for name in names] == [version.release_id for version in made]


# A stop at each point of the order


class StopsAt:
    """A writer that is the real one until its n-th write, which it never makes: the process is gone by then."""

    class Gone(BaseException):
        """Not an error that anybody handles."""

    def __init__(self, writer: Writer, at: int) -> None:
        self._writer = writer
        self._left = at

    async def write(self, op: Callable[[sqlite3.Connection], T], *, essential: bool = True) -> T:
        if self._left == 0:
            raise StopsAt.Gone
        self._left -= 1
        return await self._writer.write(op)


async def broken_off(
    writer: Writer, repository: Repository, at: int, pending: bool = False
) -> tuple[catalog.Version, int, str]:
    """A publication that stops at its write number `at`: the base, the step and the ask."""
    base = await Publisher(writer, repository, rows).create_base("s", BASE)
    step, ask = await running_step(writer)
    dying = Publisher(StopsAt(writer, at), repository, rows)
    with pytest.raises(StopsAt.Gone):
        await dying.publish(change(base.release_id, step=step, pending=pending, step_fields={"consumed": [ask]}))
    return base, step, ask


async def test_stopped_before_its_row_a_version_never_was(
    writer: Writer, repository: Repository, publisher: Publisher, reader: Reader, git: Callable[..., str]
) -> None:
    base, _, ask = await broken_off(writer, repository, 1)
    assert await publisher.recover() == []
    assert states(reader) == [(1, "base", "published")]
    assert repository.head("s") == base.release_id
    assert reader.ask(ask)["state"] == "running"
    assert git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("pending", [False, True])
async def test_stopped_after_the_ref_moved_a_version_is_finished(
    writer: Writer, repository: Repository, publisher: Publisher, reader: Reader, pending: bool
) -> None:
    base, step, ask = await broken_off(writer, repository, 2, pending)
    assert states(reader)[-1] == (2, "training", "publishing")
    told = await publisher.recover()
    state = "pending" if pending else "published"
    assert told == [f"finished v2 of 's' ({state})"]
    assert (reader.step("s", step)["state"], reader.ask(ask)["state"]) == (state, state)
    assert (await publisher.head("s")).number == (1 if pending else 2)
    assert (repository.head("s") == base.release_id) is pending
    assert await publisher.recover() == []


async def test_stopped_between_row_and_ref_a_version_is_finished(
    writer: Writer, repository: Repository, publisher: Publisher, reader: Reader, git: Callable[..., str]
) -> None:
    base, step, ask = await broken_off(writer, repository, 2)
    git("update-ref", "refs/heads/s", base.release_id)
    await publisher.recover()
    assert states(reader)[-1] == (2, "training", "published")
    assert repository.head("s") == (await publisher.head("s")).release_id != base.release_id
    assert (reader.step("s", step)["state"], reader.ask(ask)["state"]) == ("published", "published")


async def test_a_broken_off_version_whose_branch_went_on_is_a_conflict_and_frees_its_ask(
    writer: Writer, repository: Repository, publisher: Publisher, reader: Reader
) -> None:
    base, step, ask = await broken_off(writer, repository, 2)
    other = repository.commit({"harness/rules/x.md": b"by somebody else"}, {"number": 9}, base.release_id, "x")
    moved = repository.head("s")
    repository.advance("s", other, moved)
    told = await publisher.recover()
    assert len(told) == 1 and "could not be finished" in told[0]
    assert states(reader)[-1] == (2, "training", "conflict")
    assert (reader.step("s", step)["state"], reader.ask(ask)["state"]) == ("failed", "queued")


async def test_a_base_that_was_broken_off_is_finished_by_the_next_creation(
    writer: Writer, repository: Repository, publisher: Publisher
) -> None:
    dying = Publisher(StopsAt(writer, 3), repository, rows)
    with pytest.raises(StopsAt.Gone):
        await dying.create_base("s", BASE)
    assert (await publisher.create_base("s", BASE)).state == "published"
    assert (await publisher.head("s")).number == 1


async def test_reports_that_a_step_used_are_consumed_with_it_and_freed_by_a_conflict(
    publisher: Publisher, writer: Writer, reader: Reader
) -> None:
    base = await publisher.create_base("s", BASE)
    report, _ = await writer.write(lambda conn: store_report(conn, "s", {"score": 0.0}, "person"))
    step, _ = await running_step(writer)
    used = {"consumed": [report["id"]]}
    await publisher.publish(change(base.release_id, step=step, step_fields=used))
    assert reader.reports("s")[0]["consumed_by"] == step

    other, _ = await writer.write(lambda conn: store_report(conn, "s", {"score": 1.0}, "person"))
    late, _ = await running_step(writer)
    with pytest.raises(Conflict):
        await publisher.publish(change(base.release_id, b"late", step=late, step_fields={"consumed": [other["id"]]}))
    assert reader.reports("s")[0]["consumed_by"] is None
