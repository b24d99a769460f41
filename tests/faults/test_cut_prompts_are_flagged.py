"""A prompt whose front the server dropped is flagged, with what it should have cost and what was counted."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from reef.gateway.dialect import ReplyFacts
from reef.gateway.prompt_cut import PromptCheck, Windows
from reef.records.reader import Reader
from tests.unit.gateway.serving import DIALECTS, serving

LONG = "word " * 16_000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_far_fewer_tokens_counted_than_the_text_has_is_a_likely_cut(
    tmp_path: Path, dialect: str, stream: bool
) -> None:
    async with serving(tmp_path) as reef:
        words = f"[[prompt 2051]] [[cached 0]] [[usage last]] {LONG}"
        reply = await reef.ask(dialect, words, stream=stream)
        await reef.settled()
        reader = Reader(reef.writer.path)
        shown = reader.record(reply.headers["x-reef-agent-record-id"])
        listed = reader.records()[0]
        reader.close()
        for row in (shown, listed):
            assert (row["prompt_cut"], row["prompt_tokens"]) == (True, 2051)
            assert 15_000 < row["expected_tokens"] < 25_000


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_sum_that_is_the_same_window_on_several_calls_is_a_likely_cut(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        for prompt in (3996, 3090, 3596):
            words = f"[[prompt {prompt}]] [[cached 0]] [[completion {4096 - prompt}]] {'some words ' * 2000}"
            await reef.ask(dialect, words)
        rows = await reef.settled(3)
        assert [row["prompt_cut"] for row in rows] == [0, 0, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "words",
    [
        "a short prompt [[prompt 5]] [[cached 0]]",
        f"[[prompt 16200]] [[cached 0]] {LONG}",
        f"[[prompt 16200]] [[cached 16000]] {LONG}",
        f"[[prompt 4000]] [[cached 0]] [[completion 95]] {'some words ' * 2000}",
    ],
    ids=["short", "counted", "cached", "no window"],
)
async def test_a_number_that_is_explained_is_not_flagged(tmp_path: Path, dialect: str, words: str) -> None:
    async with serving(tmp_path) as reef:
        for _ in range(3):
            await reef.ask(dialect, words)
        assert [row["prompt_cut"] for row in await reef.settled(3)] == [0, 0, 0]


async def test_a_prompt_counted_without_its_cached_part_is_not_flagged(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for dialect in ("chat", "responses"):
            await reef.ask(dialect, f"[[prompt 2051]] [[cached 14000]] {LONG}")
        assert [row["prompt_cut"] for row in await reef.settled(2)] == [0, 0]


async def test_a_picture_is_not_taken_for_text(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 20_000}}
    text = {"type": "text", "text": "what is this? [[prompt 900]] [[cached 0]]"}
    async with serving(tmp_path) as reef:
        await reef.chat("", messages=[{"role": "user", "content": [text, picture]}])
        row = (await reef.settled())[0]
        assert (row["prompt_cut"], row["prompt_tokens"]) == (0, 900)
        assert row["expected_tokens"] < 100


def test_a_long_prompt_is_judged_in_no_more_time_than_a_stream_beside_it_has() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "word " * 780_000}]}).encode()
    check = PromptCheck(body, "m", Windows())
    start = time.thread_time()
    expected, cut = check.judge(ReplyFacts(prompt_tokens=4096))
    assert cut and expected is not None and expected > 900_000
    assert time.thread_time() - start < 0.1
