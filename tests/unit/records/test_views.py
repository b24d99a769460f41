"""The store in other tools: views with hex ids and times that can be read, and a page that documents all of it."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reef.help
from reef.records import rows
from reef.records.reports import store_report
from reef.records.schema import open_store
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

VIEWS = {"calls", "sessions_view", "scores"}


def sqlite_utils(*arguments: str) -> Any:
    """What the sqlite-utils command prints, parsed."""
    command = [sys.executable, "-m", "sqlite_utils", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.fixture
def filled(store: Path) -> tuple[Path, str]:
    """A store with one rated call in a session, and the call's receipt."""
    writer = Writer(store)
    writer.submit(lambda conn: rows.add_scenario(conn, "default", recipe="basic", adapter="pi")).result(30)
    writer.submit(
        lambda conn: rows.open_session(conn, "default", kind="agent", key="a-session", adapter="pi", cwd="/tmp")
    ).result(30)
    receipt = opened(
        writer, session="a-session", model="m", preview="what is it", started_at="2026-03-01T12:30:00.123Z"
    )
    settled(writer, receipt, response=b"{}", prompt_tokens=10, completion_tokens=2, answer_preview="this")
    recorded(writer)
    rate(writer, receipt)
    writer.close()
    return store, receipt


def rate(writer: Writer, receipt: str) -> None:
    body = {"score": 1, "feedback": "good", "references": [receipt]}
    writer.submit(lambda conn: store_report(conn, "default", body, "person")).result(30)


def test_sqlite_utils_lists_the_tables_and_reads_the_views(filled: tuple[Path, str]) -> None:
    store, receipt = filled
    tables = {row["table"] for row in sqlite_utils("tables", str(store))}
    assert {"records", "parts", "chains", "reports", "sessions"} <= tables
    assert {row["view"] for row in sqlite_utils("views", str(store))} == VIEWS
    call = sqlite_utils("rows", str(store), "calls", "--limit", "1")[0]
    assert (call["receipt"], call["started_at"], call["model"]) == (receipt, "2026-03-01 12:30:00", "m")
    assert (call["question"], call["answer"], call["score"]) == ("what is it", "this", 1.0)
    session = sqlite_utils("rows", str(store), "sessions_view")[0]
    assert (session["calls"], session["prompt_tokens"], session["cwd"]) == (1, 10, "/tmp")
    score = sqlite_utils("query", str(store), "select * from scores")[0]
    assert (score["receipt"], score["source"], score["score"]) == (receipt, "person", 1.0)


def test_every_view_can_be_read_to_its_end_and_shows_no_blob(filled: tuple[Path, str]) -> None:
    connection = sqlite3.connect(filled[0])
    for view in VIEWS:
        found = connection.execute(f"SELECT * FROM {view}").fetchall()
        assert found
        assert not any(isinstance(value, bytes) for row in found for value in row)
    connection.close()


def test_the_calls_of_today_are_found_without_looking_at_all(filled: tuple[Path, str]) -> None:
    connection = sqlite3.connect(filled[0])
    plan = connection.execute("EXPLAIN QUERY PLAN SELECT count(*) FROM records WHERE started_at >= '2026'").fetchall()
    connection.close()
    assert "records_by_time" in str(plan)


def documented() -> dict[str, set[str]]:
    """The tables and views of `reef help records`, each with its columns."""
    text = (Path(reef.help.__file__).parent / "records.md").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for name, columns in re.findall(r"^  ([a-z_]+)  +\(([a-z_0-9,\s]+)\)", text, re.M):
        found[name] = set(re.split(r"[,\s]+", columns.strip()))
    return found


def test_the_page_about_records_names_every_table_and_column_that_there_is(store: Path) -> None:
    connection = open_store(store)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    shadows = {"data", "idx", "content", "docsize", "config"}
    virtual = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    }
    inner = {f"{name}_{part}" for name in virtual for part in shadows}
    real = {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in names
        if not name.startswith(("sqlite_", "_sqlite")) and name not in inner
    }
    connection.close()
    assert documented() == real
