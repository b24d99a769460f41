"""What the doctor says of a store: whole, damaged, newer, older, with holes, with times that cannot be."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reef.doctor import calls, store
from reef.doctor.check import Check
from reef.paths import Paths
from reef.records import rows
from reef.records.schema import SCHEMA_VERSION, open_readonly, open_store
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled


def found(path: Path) -> dict[str, Check]:
    return {check.name: check for check in store.check(path)}


def of_calls(path: Path) -> dict[str, Check]:
    return {check.name: check for check in calls.check(path)}


@pytest.fixture
def filled(paths: Paths) -> Path:
    """A closed store with some calls in it."""
    writer = Writer(paths.database)
    for number in range(20):
        recorded(writer, os.urandom(4096).hex().encode(), b'{"answer": %d}' % number)
    writer.close()
    return paths.database


def test_a_whole_store_is_well(filled: Path) -> None:
    checks = found(filled)
    assert {name: check.state for name, check in checks.items()} == dict.fromkeys(
        ("store", "references", "log", "clock"), "ok"
    )
    assert f"schema {SCHEMA_VERSION}" in checks["store"].sentence


def test_no_store_yet_is_well(paths: Paths) -> None:
    assert found(paths.database)["store"].state == "ok"
    assert of_calls(paths.database) == {}


def test_a_damaged_page_is_said_loudly_with_the_way_to_export_what_can_be_read(filled: Path) -> None:
    size = filled.stat().st_size
    with filled.open("r+b") as file:
        # Every page but the first, which holds the schema, and its next.
        for page in range(size // 4096 // 2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    check = found(filled)["store"]
    assert check.state == "bad"
    assert check.sentence.startswith("THE STORE IS DAMAGED")
    assert check.hint is not None and f"sqlite3 {filled} .recover" in check.hint


def test_a_file_that_is_no_database_is_said_as_loudly(paths: Paths) -> None:
    paths.database.write_bytes(b"no database at all, but longer than a header" * 40)
    check = found(paths.database)["store"]
    assert (check.state, check.sentence.startswith("THE STORE IS DAMAGED")) == ("bad", True)


def test_a_store_of_a_newer_reef_is_bad_and_one_of_an_older_a_warning(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    check = found(filled)["store"]
    assert (check.state, "newer reef" in check.sentence, check.hint) == ("bad", True, "./install.sh")
    with sqlite3.connect(filled) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION - 1}")
    connection.close()
    assert found(filled)["store"].state == "warn"


def test_a_part_that_is_not_there_is_found(filled: Path) -> None:
    connection = open_store(filled)
    connection.execute("DELETE FROM parts WHERE sequence IN (SELECT sequence FROM parts ORDER BY sequence LIMIT 1)")
    connection.close()
    check = found(filled)["references"]
    assert (check.state, "1 of parts" in check.sentence) == ("bad", True)


def test_times_of_the_future_and_a_clock_that_was_set_back_are_told(filled: Path) -> None:
    connection = open_readonly(filled)
    past = store.times(connection, datetime.now(UTC) - timedelta(hours=1))
    assert (past.state, "in the future" in past.sentence) == ("warn", True)
    never_set = store.times(connection, datetime(1970, 1, 1, tzinfo=UTC))
    assert (never_set.state, never_set.hint) == ("bad", "timedatectl")
    connection.close()
    writer = open_store(filled)
    writer.execute(
        "INSERT INTO events (at, kind, ids_json) VALUES (?, 'engine_changed', '{}')", ("2026-01-01T00:00:00.000Z",)
    )
    writer.close()
    back = found(filled)["clock"]
    assert (back.state, "set back" in back.sentence) == ("warn", True)


def test_cut_prompts_broken_arguments_and_refused_words_of_the_last_days_are_counted(paths: Paths) -> None:
    writer = Writer(paths.database)
    fine = of_calls(paths.database)
    assert {check.state for check in fine.values()} == {"ok"}
    settled(writer, opened(writer), prompt_tokens=2051, expected_tokens=16000, prompt_cut=True)
    settled(writer, opened(writer), prompt_tokens=2051, expected_tokens=16000, prompt_cut=True)
    settled(writer, opened(writer), notes={"invalid_arguments": ["edit"]}, model="small")
    refused = "Unrecognized request argument supplied: max_completion_tokens"
    settled(writer, opened(writer), "failed", status=400, error=refused)
    long_ago = opened(writer, started_at="2026-01-01T00:00:00.000Z")
    settled(writer, long_ago, prompt_cut=True)
    writer.close()
    now = of_calls(paths.database)
    assert {name: check.state for name, check in now.items()} == dict.fromkeys(("prompts", "tools", "words"), "warn")
    assert now["prompts"].sentence.startswith("2 prompts")
    assert "16,000 tokens sent, 2,051 counted" in now["prompts"].sentence
    assert "1 reply of" in now["tools"].sentence and "(small)" in now["tools"].sentence
    assert "--inference.upstream-spellings older" in str(now["words"].hint)


def test_a_loss_that_the_store_tells_of_is_seen_without_a_daemon(paths: Paths) -> None:
    from reef import events
    from reef.doctor import serving

    writer = Writer(paths.database)
    writer.submit(lambda conn: rows.add_event(conn, events.RECORDING_LOST, None, {"lost": 3})).result(30)
    writer.close()
    checks = {check.name: check for check in serving.check(paths)}
    assert (checks["daemon"].state, checks["daemon"].hint) == ("warn", "reef up")
    assert (checks["recording"].state, checks["recording"].sentence[:7]) == ("warn", "3 calls")
