"""A home with a history, made by the real rooms before any daemon runs: versions, steps and asks in several states."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import cast

from reef.harness.adapter import base_of_all
from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.catalog import Rows
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository

SCENARIOS = ("grown", "lead", "back", "race", "yes", "needy", "kept")
NEEDS = ({"kind": "env", "name": "key", "check": "FOO_TOKEN"}, {"kind": "service", "name": "db", "check": "it answers"})
"""What v3 of `needy` needs."""
RULE = "Reproduce the bug first."
ASK = "when I ask you to fix a bug, reproduce it first"
REASON = "reach: pi skipped the skill, its front matter does not read back"


def grow(paths: Paths) -> None:
    """Fill the home of `paths`: each scenario has v1 (base), v2 (head, from step 1), step 2 rejected, v3 pending."""
    asyncio.run(_grow(paths))


async def _grow(paths: Paths) -> None:
    writer = Writer(paths.database)
    repository = Repository(paths.versions_git)
    repository.ensure()
    publisher = Publisher(writer, repository, cast(Rows, rows))
    try:
        for name in SCENARIOS:
            await _fill(name, writer, publisher, paths)
    finally:
        writer.close()


async def _fill(name: str, writer: Writer, publisher: Publisher, paths: Paths) -> None:
    base = base_of_all(paths).to_files()
    await writer.write(lambda conn: rows.add_scenario(conn, name, recipe="reefine", adapter="pi"))
    first = await publisher.create_base(name, base)
    await writer.write(lambda conn: rows.set_scenario(conn, name, state="ready"))
    group = {"name": "reach", "status": "pass", "detail": "its text absent before, present now", "seconds": 2.0}
    evaluation = {"policy": "reach", "groups": [group]}
    step = await writer.write(lambda conn: _step(conn, name, ASK))
    await writer.write(lambda conn: rows.update_step(conn, name, step, evaluation=evaluation))
    await writer.write(lambda conn: rows.add_activity(conn, name, step, "admission", "admitted"))
    with_rule = {**base, "harness/rules/bugs.md": RULE.encode()}
    second = await publisher.publish(
        Proposal(name, with_rule, first.release_id, "Add the rule bugs", step=step, evaluation=evaluation)
    )
    rejected = await writer.write(lambda conn: _step(conn, name, "add a skill"))
    await writer.write(lambda conn: _reject(conn, name, rejected))
    code = await writer.write(lambda conn: _step(conn, name, "notify me"))
    with_code = {**with_rule, "harness/extensions/notify.ts": b"export default () => {};\n"}
    needs = NEEDS if name == "needy" else ()
    await publisher.publish(
        Proposal(
            name, with_code, second.release_id, "Add the extension notify", step=code, pending=True, requires=needs
        )
    )


def _step(conn: sqlite3.Connection, name: str, text: str) -> int:
    ask, _, _ = rows.add_ask(conn, name, text)
    mutation = {"op": "create", "id": "bugs", "kind": "rules", "config": {"text": RULE}}
    step = rows.add_step(
        conn, name, recipe="reefine", proposer="model", policy="reach", asks=[ask], mutations=[mutation]
    )
    rows.set_ask(conn, ask, state="running", step=step)
    return step


def _reject(conn: sqlite3.Connection, name: str, step: int) -> None:
    rows.update_step(conn, name, step, state="rejected", reason=REASON)
    ask = conn.execute("SELECT lower(hex(id)) FROM asks WHERE scenario = ? AND step = ?", (name, step)).fetchone()[0]
    rows.set_ask(conn, ask, state="rejected", reason=REASON)
