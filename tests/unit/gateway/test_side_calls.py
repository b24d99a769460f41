"""Titles, summaries and tries of the quota are no turns; a script's calls are, and an agent's calls with tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.serving import DIALECTS, serving

CLAUDE = {"x-claude-code-session-id": "s"}
OPENCODE = {"x-session-id": "s", "x-session-affinity": "s"}
TITLE = "You are a title generator. You output ONLY a thread title."


def system(dialect: str, text: str) -> dict[str, Any]:
    """The member that holds a system prompt."""
    if dialect == "messages":
        return {"system": [{"type": "text", "text": text}]}
    if dialect == "responses":
        return {"instructions": text}
    return {"messages": [{"role": "system", "content": text}, {"role": "user", "content": "hello"}]}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_calls_without_tools_inside_an_agents_session_are_side_calls(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask(dialect, "hello", OPENCODE)
        await reef.ask(dialect, "hello", CLAUDE)
        await reef.ask(dialect, "hello", OPENCODE, tools=["bash"])
        await reef.ask(dialect, "hello", CLAUDE, tools=["bash"])
        await reef.ask(dialect, "hello", {"x-reef-session": "s"})
        await reef.ask(dialect, "hello")
        assert [row["side_call"] for row in await reef.settled(6)] == [1, 1, 0, 0, 0, 0]
        assert [row["session"] for row in reef.records()] == ["s", "s", "s", "s", "s", None]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_title_is_a_side_call_whoever_asks_for_it(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask(dialect, "hello", **system(dialect, TITLE))
        await reef.ask(dialect, "hello", **system(dialect, "You write titles of books and answer briefly."))
        assert [row["side_call"] for row in await reef.settled(2)] == [1, 0]


async def test_a_try_of_the_quota_is_a_side_call(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask("messages", "quota", max_tokens=1)
        await reef.ask("messages", "hello", max_tokens=1)
        assert [row["side_call"] for row in await reef.settled(2)] == [1, 0]
