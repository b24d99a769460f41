"""`reef records export` and `reef import`: out of one home, into another, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reef.cli.since import since
from reef.errors import UsageError
from tests.cli.conftest import Live


def test_records_are_exported_to_a_pipe_and_into_a_file_of_ones_own(live: Live, tmp_path: Path) -> None:
    receipts = [live.chat(f"export {number}", scenario="exporting") for number in range(3)]
    done = live.reef("records", "export", "-s", "exporting")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["agent_record_id"] for line in lines] == receipts
    assert lines[0]["payload"]["messages"][0]["content"] == "export 0"
    out = tmp_path / "out.jsonl"
    saved = live.reef("records", "export", "-s", "exporting", "-o", str(out))
    assert (saved.status, saved.out) == (0, "")
    assert "3 records and reports in" in saved.err
    assert out.read_text() == done.out
    assert out.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*.partial")) == []


def test_chats_and_pairs_are_exported_for_training(live: Live) -> None:
    better, worse = (live.chat("the same question", scenario="training") for _ in range(2))
    live.reef("report", better, "--score", "1")
    live.reef("report", worse, "--score", "0")
    chats = live.reef("records", "export", "-s", "training", "--format", "chat")
    assert chats.status == 0, chats.err
    rows = [json.loads(line) for line in chats.out.splitlines()]
    assert [row["messages"][-1]["role"] for row in rows] == ["assistant", "assistant"]
    pairs = live.reef("records", "export", "-s", "training", "--format", "pairs")
    assert pairs.status == 0, pairs.err


def test_an_export_of_nothing_says_so(live: Live) -> None:
    done = live.reef("records", "export", "--session", "no such session")
    assert (done.status, done.out) == (0, "")
    assert "nothing to export" in done.err
    assert live.reef("records", "export", "-s", "no-such-scenario").status == 1
    assert live.reef("records", "export", "--format", "csv").status == 2


def test_an_agents_session_exports_nothing(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    assert live.reef("records", "export", env={"REEF_SESSION": token}).status == 5


def test_ages_and_dates_are_understood() -> None:
    two_days = datetime.fromisoformat(since("2d") or "")
    assert abs(datetime.now(UTC) - timedelta(days=2) - two_days) < timedelta(seconds=10)
    assert since("2026-01-31T12:00:00Z") == "2026-01-31T12:00:00.000Z"
    assert since("2026-01-31T12:00:00+02:00") == "2026-01-31T10:00:00.000Z"
    assert since(None) is None
    for wrong in ("", "yesterday", "2 moons", "99999999y"):
        with pytest.raises(UsageError):
            since(wrong)
