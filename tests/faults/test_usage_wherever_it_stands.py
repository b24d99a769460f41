"""The same numbers are recorded wherever a stream puts its usage, and none where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gateway.serving import DIALECTS, serving


@pytest.mark.parametrize("where", ["last", "before", "every"])
async def test_chat_usage_is_the_same_in_every_place(tmp_path: Path, where: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask("chat", f"hello [[usage {where}]] [[prompt 30]] [[cached 10]]", stream=True)
        # Nothing was added but the receipt, which needs an event of its own where the usage does not come last.
        bare = [event for event in reply.events if event != "[DONE]" and event["choices"] == []]
        assert len(bare) == {"last": 1, "before": 2, "every": 1}[where]
        # What a client keeps of the last event is what the upstream's own last event says.
        counted = bare[-1].get("usage", {}).get("prompt_tokens")
        assert counted == {"last": 30, "before": None, "every": 30}[where] and "reef" in bare[-1]
        row = (await reef.settled())[0]
        assert (row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"]) == (30, 3, 10)


async def test_without_usage_the_numbers_are_null(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask("chat", "hello [[usage none]]", stream=True)
        row = (await reef.settled())[0]
        assert (row["state"], row["prompt_tokens"], row["completion_tokens"]) == ("complete", None, None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_prompts_count_is_whole_in_every_dialect(tmp_path: Path, dialect: str, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask(dialect, "hello [[usage last]] [[prompt 30]] [[cached 10]]", stream=stream)
        row = (await reef.settled())[0]
        assert (row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"]) == (30, 3, 10)
