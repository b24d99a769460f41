"""What an agent proposes is taken by one step of its own, after the asks, and is neither lost nor used twice."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from reef.harness.tree import Tree
from reef.learning import ledger
from reef.records import proposals
from tests.unit.learning.conftest import PASSES, Room

TAKEN = """
def grow(self, batch, context):
    found = batch.samples[0].source
    text = getattr(found, "text", None)
    made = found.mutations if text is None else [
        {"op": "create", "id": f"a{found.number}", "kind": "rules", "config": {"text": text}}
    ]
    return Candidate(text or found.reason, made)
"""
RULE = {"op": "create", "id": "brief", "kind": "rules", "config": {"text": "Be brief."}}


async def propose(room: Room, mutation: dict[str, Any] = RULE) -> str | None:
    id = await room.home.writer.write(
        lambda conn: proposals.add_proposal(conn, "s", [mutation], "it would help", "agent", "ab" * 16, None)
    )
    return id


async def settled(room: Room, count: int) -> list[dict[str, Any]]:
    end = time.monotonic() + 60
    while True:
        found = room.reader.proposals("s")
        if len(found) == count and all(row["state"] not in ("waiting", "running") for row in found):
            return found
        assert time.monotonic() < end, found
        await asyncio.sleep(0.03)


async def test_a_proposal_becomes_a_version_by_a_step_of_its_own_after_the_asks(
    room: Room, recipe: Callable[..., str]
) -> None:
    recipe(TAKEN + PASSES, inputs='["asks", "proposals"]')
    await propose(room)
    ask = await room.settled(await room.ask("Run the tests."))
    found = (await settled(room, 1))[0]
    assert (ask["step"], found["step"], found["state"], found["version"]) == (1, 2, "published", 3)
    step = room.step(2)
    assert (step["proposer"], step["asks"], step["consumed"]) == ("agent", [], [found["id"]])
    head = await room.home.publisher.head("s")
    assert Tree.from_files(room.home.repository.files(head.release_id)).get("brief") is not None


async def test_a_proposal_that_is_refused_by_its_step_is_settled_with_the_reason(
    room: Room, recipe: Callable[..., str]
) -> None:
    recipe(TAKEN + PASSES, inputs='["asks", "proposals"]')
    # Admitted once, but the tree has changed since: what it would change is not there.
    await propose(room, {"op": "remove", "id": "brief"})
    room.supervisor.wake("s")
    found = (await settled(room, 1))[0]
    assert (found["state"], found["version"]) == ("rejected", None)
    assert "there is no entry to remove" in found["outcome"]


async def test_the_inbox_holds_eight(room: Room) -> None:
    assert all([await propose(room) for _ in range(proposals.INBOX)])
    assert await propose(room) is None
    assert [row["number"] for row in room.reader.proposals("s")] == [8, 7, 6, 5, 4, 3, 2, 1]


async def test_a_step_that_a_stop_broke_off_gives_its_proposal_back_once(room: Room) -> None:
    await propose(room)

    def begin(conn: sqlite3.Connection) -> ledger.Begun | None:
        facts = ledger.scenario_facts(conn, "s")
        assert facts is not None
        return ledger.begin(conn, facts)

    for step, waits in ((1, True), (2, False)):
        begun = await room.home.writer.write(begin)
        assert begun is not None and begun.number == step and len(begun.proposals) == 1
        assert await room.home.writer.write(begin) is None
        await room.home.writer.write(ledger.settle_broken_off)
        found = room.reader.proposals("s")[0]
        assert (found["state"] == "waiting") is waits
    assert found["state"] == "failed"
    assert await room.home.writer.write(ledger.waiting) == []
