"""What stands behind a version: each link says whether something recorded names it, or whether it only follows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from reef.daemon.origins import behind
from reef.paths import Paths
from reef.records import rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from tests.unit.records.calling import recorded

MUTATION = {"op": "create", "id": "bugs", "kind": "rules", "config": {"text": "Reproduce it."}}


@pytest.fixture
def writer(paths: Paths) -> Iterator[Writer]:
    found = Writer(paths.database)
    yield found
    found.close()


def version(step: int | None, operation: str = "training") -> dict[str, Any]:
    return {"scenario": "default", "step": step, "operation": operation}


def test_a_version_leads_over_its_step_to_asks_and_reports_and_to_the_calls_of_both(
    paths: Paths, writer: Writer
) -> None:
    before = recorded(writer, session="key-1", preview="the bug came back")
    judged = recorded(writer, session="key-2", preview="another talk")

    def write(conn: sqlite3.Connection) -> int:
        ask, _, _ = rows.add_ask(conn, "default", "reproduce bugs first", session="key-1")
        report, _ = store_report(
            conn, "default", {"score": 0.0, "feedback": "not reproduced", "references": [judged]}, "person"
        )
        used = [ask, report["id"]]
        return rows.add_step(conn, "default", recipe="reefine", asks=[ask], consumed=used, mutations=[MUTATION])

    step = writer.submit(write).result()
    later = recorded(writer, session="key-1", preview="after the ask")
    found = behind(Reader(paths.database), version(step), "bugs")
    assert [(link["kind"], link["how"]) for link in found] == [
        ("step", "recorded"),
        ("ask", "recorded"),
        ("call", "inferred"),
        ("report", "recorded"),
        ("call", "recorded"),
    ]
    assert (found[1]["text"], found[3]["feedback"]) == ("reproduce bugs first", "not reproduced")
    assert [found[2]["receipt"], found[4]["receipt"]] == [before, judged]
    assert later not in str(found)


def test_a_step_that_does_not_name_the_entry_is_only_inferred(paths: Paths, writer: Writer) -> None:
    step = writer.submit(lambda conn: rows.add_step(conn, "default", recipe="reefine", mutations=[MUTATION])).result()
    reader = Reader(paths.database)
    assert behind(reader, version(step), None)[0]["how"] == "recorded"
    (found,) = behind(reader, version(step), "other")
    assert found["how"] == "inferred" and "do not name other" in found["why"]


def test_what_was_forgotten_since_is_said(paths: Paths, writer: Writer) -> None:
    gone = "0" * 32
    step = writer.submit(lambda conn: rows.add_step(conn, "default", recipe="reefine", asks=[gone])).result()
    reader = Reader(paths.database)
    assert "forgotten since" in behind(reader, version(step), None)[1]["why"]
    assert behind(reader, version(9), None)[0]["how"] == "inferred"


def test_what_no_step_made_says_who_did(paths: Paths, writer: Writer) -> None:
    reader = Reader(paths.database)
    assert behind(reader, version(None, "base"), None)[0]["why"] == "reef ships it"
    assert behind(reader, version(None, "import"), None)[0]["why"] == "it was imported"
