"""An overloaded upstream looks overloaded to the client: status, body, the time to wait, and one try only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gateway.serving import DIALECTS, serving


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", [*DIALECTS, "count"])
async def test_status_body_and_wait_hint_pass_and_nothing_is_tried_again(
    tmp_path: Path, dialect: str, stream: bool
) -> None:
    async with serving(tmp_path) as reef:
        for status, wait in ((529, "7"), (429, "3"), (500, "1")):
            reply = await reef.ask(dialect, f"[[status {status} retry-after {wait}]]", stream=stream)
            expected = None if dialect == "count" else wait
            assert (reply.status, reply.headers.get("retry-after")) == (status, expected)
            assert reply.json["error"]["message"] == "scripted error"
            assert (reply.json.get("type") == "error") is (dialect in ("messages", "count"))
        rows = await reef.settled(3)
        assert [(row["state"], row["status"], row["error"]) for row in rows] == [
            ("failed", status, "scripted error") for status in (529, 429, 500)
        ]
        assert len(reef.seen()) == len(rows) == 3
