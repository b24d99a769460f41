"""A model that thinks for minutes before its first token is waited for."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from reef.config import Settings
from tests.unit.gateway.serving import DIALECTS, serving


def test_the_read_timeout_is_ten_minutes_and_the_connect_timeout_short() -> None:
    inference = Settings().inference
    assert inference.timeout_s >= 600 and inference.connect_timeout_s <= 15


@pytest.mark.parametrize("words", ["[[slow 3s]]", "[[slow first 3s]]"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_late_first_byte_is_waited_for_longer_than_a_connection(
    tmp_path: Path, dialect: str, words: str
) -> None:
    async with serving(tmp_path, connect_timeout_s=1) as reef:
        reply = await reef.ask(dialect, f"hello {words}", stream=True)
        assert (reply.status, reply.broken) == (200, False)
        row = (await reef.settled())[0]
        assert row["state"] == "complete" and row["first_byte_ms"] > 2900


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_read_timeout_is_a_setting(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path, timeout_s=0.5) as reef:
        assert (await reef.ask(dialect, "[[slow 5s]]")).status == 504
        reply = await reef.ask(dialect, "[[slow first 5s]]", stream=True)
        assert "no answer in time" in reply.events[-1]["error"]["message"]
        assert [row["state"] for row in await reef.settled(2)] == ["failed", "failed"]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("words", ["[[slow 90s]]", "[[slow first 90s]]"])
async def test_ninety_seconds_before_the_first_token_are_waited_for(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path) as reef:
        began = time.monotonic()
        reply = await reef.ask("messages", f"hello {words}", stream=True)
        assert reply.events[-1]["type"] == "message_stop" and time.monotonic() - began > 90
        assert (await reef.settled())[0]["state"] == "complete"
