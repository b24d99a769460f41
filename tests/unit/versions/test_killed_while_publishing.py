"""A process that is killed at any point of a publication: after the next start everything agrees, nothing is lost.

first object → objects → row `publishing` → ref → row `published` → told
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reef.daemon.served import ServedVersions
from reef.learning import ledger
from reef.paths import Paths
from reef.records import rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from reef.versions import catalog
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.fakes.dying_publisher import POINTS

ROOT = Path(__file__).parents[3]
WITH_STEP = ("training", "pending", "weights")
BEFORE_ROW = ("first object", "large file", "objects", "in the first transaction")
COMMON = tuple(point for point in POINTS if point != "large file")
QUICK = [
    *[("training", point) for point in COMMON],
    *[("pending", point) for point in ("objects", "row", "ref")],
    *[("rollback", "row"), ("promote", "ref"), ("upgrade", "row"), ("base", "objects"), ("base", "row")],
    *[("weights", "large file"), ("weights", "ref")],
]
ALL = [(what, point) for what in ("pending", "rollback", "promote", "upgrade", "weights", "base") for point in COMMON]
CASES = [*QUICK, *[pytest.param(*case, marks=pytest.mark.slow) for case in ALL if case not in QUICK]]


@dataclass
class Before:
    """A scenario with two published versions, a pending one, and a step that is about to publish."""

    served: int
    facts: dict[str, str]


async def prepare(writer: Writer, repository: Repository, what: str) -> Before:
    publisher = Publisher(writer, repository, rows)
    if what == "base":
        return Before(0, {})
    base = await publisher.create_base("s", {"harness/rules/base.md": b"base\n"})
    rule = {"harness/rules/base.md": b"base\n", "harness/rules/a.md": b"a\n"}
    second = await publisher.publish(Proposal("s", rule, base.release_id, "a rule"))
    code = {**rule, "harness/extensions/a.ts": b"a\n"}
    await publisher.publish(Proposal("s", code, second.release_id, "code", pending=True))

    def begin(conn: sqlite3.Connection) -> dict[str, str]:
        ask, _, _ = rows.add_ask(conn, "s", "do it")
        report, _ = store_report(conn, "s", {"score": 0.0}, "person")
        step = rows.add_step(conn, "s", recipe="reefine", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        return {"ask": ask, "report": report["id"], "step": str(step)}

    facts = await writer.write(begin) if what in WITH_STEP else {}
    return Before(2, {"head": second.release_id, **facts})


def kill(what: str, point: str, facts: dict[str, str]) -> None:
    words = [f"{name}={value}" for name, value in facts.items()]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fakes.dying_publisher", point, what, *words], cwd=ROOT, capture_output=True
    )
    assert ended.returncode == -9, ended.stderr.decode()


@dataclass
class After:
    """The next start of the home."""

    writer: Writer
    repository: Repository
    served: ServedVersions
    reader: Reader
    failed: list[tuple[str, int]]

    @classmethod
    async def start(cls, paths: Paths) -> After:
        writer, repository = Writer(paths.database), Repository(paths.versions_git)
        repository.ensure()
        served = ServedVersions(writer, repository, rows)
        await served.load()
        await served.recover()
        failed = await writer.write(ledger.settle_broken_off)
        return cls(writer, repository, served, Reader(paths.database), failed)

    def agree(self) -> int:
        """The number of the version that catalog, branch and served head agree on; 0 before the base."""
        found = self.served.head_now("s")
        states = {row["version"]: row["state"] for row in self.reader.versions("s")}
        assert "publishing" not in states.values()
        assert self.repository.head("s") == (None if found is None else found.release_id)
        if found is None:
            return 0
        assert states[found.number] == "published"
        assert max(number for number, state in states.items() if state == "published") == found.number
        assert self.repository.files(found.release_id)
        return found.number


@pytest.mark.parametrize(("what", "point"), CASES)
async def test_after_a_kill_catalog_branch_and_head_agree_and_inputs_are_neither_lost_nor_used_twice(
    paths: Paths, git: Callable[..., str], what: str, point: str
) -> None:
    repository, writer = Repository(paths.versions_git), Writer(paths.database)
    repository.ensure()
    before = await prepare(writer, repository, what)
    writer.close()
    kill(what, point, before.facts)

    after = await After.start(paths)
    try:
        is_made = point not in BEFORE_ROW
        number = after.agree()
        made = 1 if what == "base" else 4
        assert number == (made if is_made and what != "pending" else before.served)
        assert git("fsck", "--strict", "--no-dangling") == ""
        assert not list(paths.versions_git.glob("lfs/objects/.new-*"))
        if what in WITH_STEP:
            inputs(after, before.facts, made if is_made else None, what)
        elif what == "promote" and is_made:
            assert [row["state"] for row in after.reader.versions("s") if row["version"] == 3] == ["published"]
        if not is_made or what in ("base", "pending"):
            assert await again(after, what, before) > number
    finally:
        after.writer.close()


def inputs(after: After, facts: dict[str, str], version: int | None, what: str) -> None:
    """The ask and the report belong to the version that was made, or are as free as before."""
    ask, step = after.reader.ask(facts["ask"]), after.reader.step("s", int(facts["step"]))
    (report,) = after.reader.reports("s")
    if version is None:
        assert (step["state"], step["version"]) == ("failed", None) and step["reason"]
        assert (ask["state"], ask["step"], report["consumed_by"]) == ("queued", None, None)
        return
    state = "pending" if what == "pending" else "published"
    assert (step["state"], step["version"]) == (state, version)
    assert (ask["state"], ask["version"], report["consumed_by"]) == (state, version, int(facts["step"]))
    ended = [event for event in after.reader.events() if event["kind"] in ("step_ended", "version_published")]
    assert len({str(event["ids"]) + event["kind"] for event in ended}) == len(ended), "something was told twice"


async def again(after: After, what: str, before: Before) -> int:
    """The same publication once more, by the daemon that is there now."""
    if what == "base":
        assert (await after.served.create_base("s", {"harness/rules/other.md": b"x"})).number == 1
        return 2
    files = {"harness/rules/base.md": b"base\n", "harness/rules/again.md": b"again\n"}
    version = await after.served.publish(Proposal("s", files, before.facts["head"], "again"))
    assert version.state == "published"
    return after.agree()


async def test_an_ask_whose_steps_are_broken_off_twice_is_failed(paths: Paths, writer: Writer) -> None:
    def begin(conn: sqlite3.Connection, ask: str | None = None) -> str:
        ask = ask or rows.add_ask(conn, "s", "what ends the daemon")[0]
        step = rows.add_step(conn, "s", recipe="reefine", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        return ask

    ask = await writer.write(begin)
    reader = Reader(paths.database)
    assert await writer.write(ledger.settle_broken_off) == [("s", 1)]
    assert (reader.ask(ask)["state"], reader.ask(ask)["reason"]) == ("queued", catalog.BROKEN_OFF)
    await writer.write(lambda conn: begin(conn, ask))
    assert await writer.write(ledger.settle_broken_off) == [("s", 2)]
    assert (reader.ask(ask)["state"], reader.ask(ask)["reason"]) == ("failed", ledger.STOPPED)
