"""A captured stream that arrives in whatever pieces goes on byte for byte and makes the same record each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.replay import captured
from tests.unit.gateway.serving import DIALECTS, Serving, serving

SAME = (
    "state", "status", "error", "finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens",
    "answer_preview", "response_bytes", "response_hash", "trainable", "prompt_cut", "notes_json",
)  # fmt: skip


@pytest.mark.parametrize(
    "seeds", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])], ids=lambda n: f"{n} ways"
)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_bytes_are_those_that_were_sent_and_the_records_are_equal(
    tmp_path: Path, dialect: str, seeds: int
) -> None:
    sent = captured(dialect)
    async with serving(tmp_path) as reef:
        for seed in range(seeds):
            assert await _without_receipt(reef, dialect, seed) == sent
        rows = await reef.settled(seeds)
        assert len(rows) == seeds and rows[0]["state"] == "complete"
        assert {tuple(row[name] for name in SAME) for row in rows} == {tuple(rows[0][name] for name in SAME)}
        assert len({reef.response_of(row) for row in rows}) == 1


async def _without_receipt(reef: Serving, dialect: str, seed: int) -> bytes:
    """What the client got, less the one member with its receipt."""
    reply = await reef.ask(dialect, f"[[replay {dialect} {seed}]]", stream=True)
    assert (reply.status, reply.broken) == (200, False)
    receipt = reply.headers["x-reef-agent-record-id"]
    assert [event["reef"] for event in reply.events if isinstance(event, dict) and "reef" in event] == [
        {"agent_record_id": receipt}
    ]
    member = b',"reef":' + json.dumps({"agent_record_id": receipt}, separators=(",", ":")).encode()
    assert reply.body.count(member) == 1
    return reply.body.replace(member, b"")
