"""The records' bench runs and prints every row; what it says of growth depends on no machine and is a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.records import IMAGE_LIMIT, INDEXED_LIMIT, PLAIN_LIMIT
from tests.bench.records_growth import measure_growth, transcript
from tests.bench.records_sessions import DIALECTS, agent_session, dumped

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_short_run_prints_every_session_rate_and_wait_and_every_figure_with_a_limit(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.records", "--quick", "--turns", "12", "--count", "400"]
    command += ["--rounds", "1", "--json", str(figures)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for start in (*DIALECTS, "letters, FULL", "prose, NORMAL", "list: newest", "search: a word", "open: a record"):
        assert any(line.startswith(start) for line in done.stdout.splitlines()), start
    found = json.loads(figures.read_text())
    assert len(found["growth"]) == 2 * len(DIALECTS) and all(row["exact"] for row in found["growth"])
    assert len(found["reached"]) == 8


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("image", [False, True], ids=["without an image", "with an image"])
@pytest.mark.slow
def test_a_session_of_two_hundred_turns_grows_the_store_within_its_limits(dialect: str, image: bool) -> None:
    found = measure_growth("", dialect, list(agent_session(dialect, 200, image)))
    assert found.exact
    assert found.grown <= (IMAGE_LIMIT if image else PLAIN_LIMIT) * found.parts
    assert found.indexed <= (IMAGE_LIMIT if image else INDEXED_LIMIT) * found.parts
    assert found.indexed < 0.03 * found.raw


def test_a_transcript_is_read_as_one_call_for_each_reply(tmp_path: Path) -> None:
    lines = [
        {"type": "session", "id": "1"},
        {"type": "message", "message": {"role": "user", "content": "hello"}},
        {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}},
        {"type": "message", "message": {"role": "user", "content": "more"}},
        {"type": "message", "message": {"role": "assistant", "content": []}},
    ]
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"\n".join(dumped(line) for line in lines))
    turns = list(transcript(file))
    assert [len(json.loads(turn.request)["messages"]) for turn in turns] == [1, 3]
    assert json.loads(turns[0].reply)["content"] == [{"type": "text", "text": "yes"}]
