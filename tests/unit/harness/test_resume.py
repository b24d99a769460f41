"""How a session is gone on with through reef: the one that this run wrote, and only after a run with a person."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reef.harness.adapter import load_adapter
from reef.harness.resume import resume_line

PI = load_adapter("pi")
START = 1_800_000_000.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's home beside the project that the process is in."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "agent"


def session(home: Path, name: str, cwd: str | None = None, at: float = START + 5) -> None:
    file = home / "sessions" / "--project--" / f"2026_{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    header = {"type": "session", "id": name, "cwd": cwd or str(Path.cwd())}
    file.write_text(json.dumps(header) + '\n{"type": "message"}\n')
    os.utime(file, (at, at))


def test_the_session_written_last_is_named(home: Path) -> None:
    session(home, "old", at=START - 60)
    session(home, "first", at=START + 1)
    session(home, "last", at=START + 9)
    session(home, "elsewhere", cwd="/other", at=START + 10)
    assert resume_line(PI, home, [], START) == "with reef: reef-pi --session last"


@pytest.mark.parametrize("arguments", [["-p", "hi"], ["--print", "hi"], ["--mode", "json"]])
def test_a_run_without_a_person_ends_without_a_line(home: Path, arguments: list[str]) -> None:
    session(home, "one")
    assert resume_line(PI, home, arguments, START) is None


def test_a_run_that_wrote_no_session_of_this_directory_ends_without_a_line(home: Path) -> None:
    assert resume_line(PI, home, [], START) is None
    session(home, "old", at=START - 60)
    session(home, "elsewhere", cwd="/other")
    (home / "sessions" / "broken.jsonl").write_text("not JSON")
    (home / "sessions" / "list.jsonl").write_text("[]")
    assert resume_line(PI, home, [], START) is None


def test_an_id_is_quoted_as_the_shell_needs_it(home: Path) -> None:
    session(home, "a b")
    assert resume_line(PI, home, [], START) == "with reef: reef-pi --session 'a b'"


def test_a_session_that_is_kept_in_a_database_is_found_by_the_agents_own_query(home: Path) -> None:
    agent = load_adapter("opencode")
    assert agent.transcript is not None
    place = home / agent.transcript.path
    assert resume_line(agent, home, [], START) is None
    place.parent.mkdir(parents=True)
    here = str(Path.cwd())
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE session (id, directory, parent_id, time_updated)")
        rows = [("ses_old", here, None, START - 60), ("ses_last", here, None, START + 9)]
        rows += [("ses_child", here, "ses_last", START + 10), ("ses_elsewhere", "/other", None, START + 11)]
        values = [(name, folder, parent, at * 1000) for name, folder, parent, at in rows]
        connection.executemany("INSERT INTO session VALUES (?, ?, ?, ?)", values)
        connection.commit()
    assert resume_line(agent, home, [], START) == "with reef: reef-opencode -s ses_last"
    assert resume_line(agent, home, ["run", "hi"], START) is None
    assert resume_line(agent, home, [], START + 60) is None


def test_claude_codes_session_is_named_by_the_first_line_that_has_its_directory(home: Path) -> None:
    file = home / "projects" / "-project" / "0123.jsonl"
    file.parent.mkdir(parents=True)
    first = {"type": "queue-operation", "sessionId": "0123"}
    second = {"type": "system", "sessionId": "0123", "cwd": str(Path.cwd())}
    file.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\nnot JSON\n")
    assert resume_line(load_adapter("claude"), home, [], START - 1e9) == "with reef: reef-claude --resume 0123"
    assert resume_line(load_adapter("claude"), home, ["-p", "hi"], START - 1e9) is None
