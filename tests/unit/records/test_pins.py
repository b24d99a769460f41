"""Pins: one for each agent and one for all of them, the agent's own first."""

from __future__ import annotations

from pathlib import Path

from reef.pinned import pinned
from reef.records.pins import pin, pins, unpin
from reef.records.schema import open_store


def test_an_agents_own_pin_comes_before_that_of_every_agent_and_a_new_one_replaces_the_old(tmp_path: Path) -> None:
    conn = open_store(tmp_path / "reef.db")
    assert pinned(pins(conn, "coding"), "pi") is None
    for adapter, version in ((None, 2), ("codex", 3), (None, 4)):
        pin(conn, "coding", adapter, version)
    pin(conn, "other", "pi", 9)
    found = pins(conn, "coding")
    assert [(row["adapter"], row["version"]) for row in found] == [(None, 4), ("codex", 3)]
    assert (pinned(found, "pi"), pinned(found, "codex")) == (4, 3)
    assert len(pins(conn)) == 3
    assert unpin(conn, "coding", "codex")
    assert not unpin(conn, "coding", "codex")
    assert unpin(conn, "coding", None)
    assert pins(conn, "coding") == []
    conn.close()
