"""An error inside a stream that began with 200 is relayed as it is, and the record is `failed` with its message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gateway.serving import DIALECTS, serving


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_as_the_first_event_makes_the_record_failed(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "[[error first]]", stream=True)
        assert reply.status == 200 and reply.events[0]["error"]["message"] == "quota exceeded"
        row = (await reef.settled())[0]
        assert (row["state"], row["error"], row["trainable"]) == ("failed", "quota exceeded", 0)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_in_the_middle_keeps_what_was_said(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "[[paced 9 1ms]] [[error after 3]]", stream=True)
        assert b"engine fell over" in reply.body
        assert b"message_stop" not in reply.body and b"response.completed" not in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["error"]) == ("failed", "engine fell over")
        assert (row["answer_preview"] or "").startswith("word0")


async def test_a_response_that_says_that_it_failed_is_failed_and_carries_no_receipt(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask("responses", "hello [[failed]]", stream=True)
        assert reply.events[-1]["type"] == "response.failed" and b"agent_record_id" not in reply.body
        row = (await reef.settled())[0]
        assert (row["state"], row["error"], row["answer_preview"]) == ("failed", "engine fell over", "You said: hello")
