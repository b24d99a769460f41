"""`reef import`: records from another home, and the sessions that agents had before reef."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from reef.cli.import_progress import Checkpoint
from reef.errors import Conflict
from reef.ids import new_id
from tests.cli.conftest import Live
from tests.unit.transcripts.test_transcripts import PI, written

REPLY = {"choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]}


def record(text: str, **reef: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}]}
    payload |= {"reef": {"format": "reef-record/1", **reef}} if reef else {}
    return {"agent_record_id": new_id(), "request_type": "inference", "payload": payload | {"response": REPLY}}


def test_an_export_comes_in_again_and_a_second_time_adds_nothing(live: Live, tmp_path: Path) -> None:
    receipt = live.chat("out and in", scenario="there")
    live.reef("report", receipt, "--score", "1")
    out = tmp_path / "out.jsonl"
    live.reef("records", "export", "-s", "there", "-o", str(out))
    lines = [json.loads(line) | {"agent_record_id": new_id()} for line in out.read_text().splitlines()]
    lines[1]["payload"]["references"] = [lines[0]["agent_record_id"]]
    file = written(tmp_path / "again.jsonl", lines)
    [told] = live.json("import", str(file))["files"]
    assert (told["records"], told["reports"], told["new"], told["scenarios"]) == (1, 1, 2, {"there": 2})
    done = live.reef("import", str(file), "-s", "there")
    assert "2 of them were there already" in done.out
    assert sorted(place.name for place in tmp_path.glob("*import*")) == []
    rows = live.json("records", "list", "-s", "there")
    assert [(row["preview"], row["score"]) for row in rows] == [("out and in", 1.0)] * 2


def test_a_dry_run_says_what_would_be_imported_and_names_every_bad_line(live: Live, tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", [record("one", started_at="2026-01-31T00:00:00.000Z"), record("two")])
    with file.open("a") as out:
        out.write('{"agent_record_id": 1}\n\nno json\n')
    done = live.reef("import", str(file), "-s", "dry", "--dry-run")
    assert done.status == 1
    assert "2 records" in done.out and "would be imported into dry" in done.out
    assert "line 3 is not {agent_record_id, request_type, payload}" in done.out
    assert "line 5 is not JSON" in done.out
    assert "dry" not in [row["name"] for row in live.json("scenarios", "list")]


def test_a_bad_line_ends_the_import_before_its_batch_and_the_rest_follows_when_it_is_mended(
    live: Live, tmp_path: Path
) -> None:
    good = [json.dumps(record(f"question {number}")) for number in range(130)]
    missing = {"agent_record_id": new_id(), "request_type": "report", "payload": {"references": [new_id()], "score": 1}}
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join([*good, json.dumps(missing)]) + "\n")
    done = live.reef("import", str(file), "-s", "resumed")
    assert done.status == 1
    assert f"{file}: line 131: there is no record" in done.err
    assert "128 that came before are imported" in done.err
    assert (tmp_path / "r.jsonl.reef-import.json").is_file()
    again = live.reef("import", str(file), "-s", "other")
    assert again.status == 1
    assert "progress of another file, home or scenario" in again.err
    again = live.reef("import", str(file), "-s", "resumed", "--json")
    assert "line 131" in again.err
    file.write_text("\n".join(good) + "\n")
    (tmp_path / "r.jsonl.reef-import.json").unlink()
    [told] = live.json("import", str(file), "-s", "resumed")["files"]
    assert (told["records"], told["new"]) == (130, 2)


def test_a_stopped_import_goes_on_behind_the_last_batch(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", [record("one")])
    first = Checkpoint(file, None, "home", {"all": "s"})
    with first.held():
        first.note(10, 1)
        second = Checkpoint(file, None, "home", {"all": "s"})
        with pytest.raises(Conflict, match="another import"), second.held():
            pass
    with second.held():
        assert (second.offset, second.line) == (10, 1)
    for other in (Checkpoint(file, None, "another", {"all": "s"}), Checkpoint(file, None, "home", {"all": "t"})):
        with pytest.raises(Conflict, match="another file, home or scenario"), other.held():
            pass
    file.write_text("changed\n")
    changed = Checkpoint(file, None, "home", {"all": "s"})
    with pytest.raises(Conflict), changed.held():
        pass


def test_sessions_from_before_become_records_that_say_so(live: Live, tmp_path: Path) -> None:
    written(tmp_path / "sessions/--srv-p--/one.jsonl", PI)
    done = live.reef("import", str(tmp_path / "sessions"), "-s", "earlier")
    assert done.status == 0, done.err
    assert "3 records" in done.out
    again = live.reef("import", str(tmp_path / "sessions"), "-s", "earlier")
    assert "3 of them were there already" in again.out
    rows = live.json("records", "list", "-s", "earlier")
    assert [(row["state"], row["session"], row["origin"]) for row in rows] == [
        ("complete", "s-pi", "transcript:pi"),
        ("failed", "s-pi", "transcript:pi"),
        ("complete", "s-pi", "transcript:pi"),
    ]
    assert all(row["version"] is None and not row["trainable"] for row in rows)
    [session] = live.json("sessions", "list", "-s", "earlier")
    assert (session["key"], session["calls"], session["cwd"], session["adapter"]) == ("s-pi", 3, "/srv/p", "pi")
    shown = live.reef("records", "show", rows[0]["agent_record_id"])
    assert "transcript of pi" in shown.out
    assert not list(tmp_path.glob("sessions/**/*import*"))


def test_what_is_no_file_of_records_is_refused(live: Live, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert live.reef("import", str(tmp_path / "notes.txt")).status == 1
    assert live.reef("import", str(tmp_path / "nothing")).status == 1
    assert live.reef("import", str(tmp_path)).status == 1


def test_an_agents_session_imports_nothing(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    file = written(tmp_path / "r.jsonl", [record("one")])
    assert live.reef("import", str(file), env={"REEF_SESSION": token}).status == 5


def test_two_imports_of_one_file_do_not_run_at_once(live: Live, tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", [record("one")])
    with (tmp_path / "r.jsonl.reef-import.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = live.reef("import", str(file), "-s", "locked")
    assert done.status == 1
    assert "another import of this file is running" in done.err


def test_a_terminal_sees_how_far_it_has_come(live: Live, tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", [record("one")])
    status, shown = live.on_terminal("import", str(file), "-s", "seen")
    assert status == 0
    assert "100%" in shown
