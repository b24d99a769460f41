"""What leaves a home comes into another as it was, and leaves that one again in the same bytes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reef.gateway.imported import read_envelope
from reef.records import reports, rows
from reef.records.importing import store_imported
from reef.records.reader import Reader
from reef.records.revisions import revise_report
from reef.records.writer import Writer
from tests.unit.gateway.test_imported import STRANGE
from tests.unit.records.calling import opened, recorded, settled


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Writer]:
    """The writer of another home."""
    made = Writer(tmp_path / "other" / "reef.db")
    yield made
    made.close()


def lines(store: Path, **wanted: str) -> list[bytes]:
    reader = Reader(store)
    try:
        return list(reader.export(**wanted))
    finally:
        reader.close()


def bring(writer: Writer, envelopes: list[bytes], scenario: str = "default") -> int:
    items = [read_envelope(line, person=True, redact=True) for line in envelopes]
    return writer.submit(lambda conn: store_imported(conn, scenario, items)).result(60)


def report(writer: Writer, *references: str, source: Any = "person", **said: Any) -> str:
    body = {"references": list(references)} | said
    row, _ = writer.submit(lambda conn: reports.store_report(conn, "default", body, source)).result(60)
    return str(row["id"])


def fill(writer: Writer) -> list[str]:
    """A store with a call of every kind, and reports of every kind. Returns the receipts."""
    made = [recorded(writer, request=body, response=body, model=f"m{place}") for place, body in enumerate(STRANGE)]
    large = json.dumps({"messages": [{"role": "user", "content": "word " * 4000}] * 3}).encode()
    made.append(
        recorded(
            writer, large, session="s1", adapter="pi", version=3, engine="upstream", load_id="a:1", side_call=True,
            tags={"client": "c", "trial": "1"}, preview="word", streaming=True, source="agent", follows="resp_0",
        )
    )  # fmt: skip
    failed = opened(writer, b'{"messages":[]}', session="s1", source="person")
    settled(
        writer, failed, "failed", status=502, error="the model server is gone", attempts=[{"error": "refused"}],
        notes={"rules": {"bytes": 10, "cap": 5}}, first_byte_ms=1.25, duration_ms=10.5,
    )  # fmt: skip
    cut = opened(writer, b'{"messages":[{"role":"user","content":"my key is sk-ant-api03-' + b"a1B2" * 24 + b'"}]}')
    settled(
        writer, cut, "cancelled", response=b'{"choices":[]}', raw=b"data: {}\n\ndata: [DONE]\n\n", prompt_tokens=7,
        completion_tokens=3, cached_tokens=1, expected_tokens=9, prompt_cut=True, finish_reason="stop",
        answer_preview="four", reply_name="resp_1",
    )  # fmt: skip
    made += [failed, cut]
    report(writer, made[0], score=1.0)
    report(writer, made[0], made[1], score=0.5, feedback={"why": "half \ud83d"}, metadata={"task": {"name": "t"}})
    report(writer, source="agent", feedback="no record of its own")
    taken_back = report(writer, made[2], score=0, source="program")
    writer.submit(lambda conn: reports.withdraw_report(conn, taken_back)).result(60)
    return made


def test_a_round_trip_into_an_empty_home_gives_the_same_bytes_again(writer: Writer, empty: Writer) -> None:
    fill(writer)
    writer.submit(
        lambda conn: rows.open_session(conn, "default", key="s1", adapter="pi", cwd="/srv/project", title="the parser")
    ).result(60)
    first = lines(writer.path)
    assert bring(empty, first) == len(first)
    assert lines(empty.path) == first
    assert bring(empty, first) == 0
    assert bring(writer, first) == 0
    assert lines(empty.path) == first


def test_every_column_of_a_record_comes_along_but_those_of_its_home(writer: Writer, empty: Writer) -> None:
    fill(writer)
    bring(empty, lines(writer.path))
    own = {"sequence", "version", "origin", "notes_json"}
    own |= {name for name in columns(writer.path) if name.endswith(("_part", "_chain"))}
    for before, after in zip(stored(writer.path), stored(empty.path), strict=True):
        assert {name for name in before if before[name] != after[name]} <= own
        assert (after["origin"], after["version"]) == ("import", None)


def test_bodies_are_the_same_bytes_in_the_other_home(writer: Writer, empty: Writer) -> None:
    receipts = fill(writer)
    bring(empty, lines(writer.path))
    here, there = Reader(writer.path), Reader(empty.path)
    for receipt in receipts:
        assert there.request_bytes(receipt) == here.request_bytes(receipt)
        assert there.response_bytes(receipt) == here.response_bytes(receipt)
        assert there.raw_bytes(receipt) == here.raw_bytes(receipt)
    here.close()
    there.close()


def test_a_revised_report_keeps_what_it_said_before(writer: Writer, empty: Writer) -> None:
    receipt = recorded(writer)
    first = report(writer, receipt, score=1.0, feedback="good")
    revise(writer, first, score=0.0, feedback="on second thought")
    out = lines(writer.path)
    bring(empty, out)
    assert lines(empty.path) == out
    there = Reader(empty.path)
    found = there.report(first)
    there.close()
    assert (found["score"], [one["score"] for one in found["revisions"]]) == (0.0, [1.0, 0.0])
    # What was reported first is still what the id stands for.
    body = {"agent_record_id": first, "references": [receipt], "score": 1.0, "feedback": "good"}
    _, new = empty.submit(lambda conn: reports.store_report(conn, "default", body, "person")).result(60)
    assert not new


def test_pruned_bodies_stay_pruned_and_their_ids_are_still_known(writer: Writer, empty: Writer) -> None:
    receipt = recorded(writer, b'{"messages":[1]}', b'{"choices":[]}')
    whole = lines(writer.path)

    def prune(conn: sqlite3.Connection) -> None:
        conn.execute(
            "UPDATE records SET request_part = NULL, response_part = NULL, pruned_at = '2026-01-01T00:00:00.000Z'"
        )

    bring(empty, whole)
    empty.submit(prune).result(60)
    writer.submit(prune).result(60)
    assert bring(empty, whole) == 0
    pruned = lines(writer.path)
    assert pruned == lines(empty.path)
    assert bring(empty, pruned) == 0
    assert json.loads(pruned[0])["payload"]["reef"]["request"]["bytes"] == 16
    assert receipt in pruned[0].decode()


def test_filters_take_a_report_along_only_with_all_that_it_refers_to(writer: Writer) -> None:
    one = recorded(writer, session="a", started_at="2026-01-01T00:00:00.000Z")
    two = recorded(writer, session="a", started_at="2026-03-01T00:00:00.000Z")
    three = recorded(writer, session="b", scenario="other", started_at="2026-03-01T00:00:00.000Z")
    alone, both = report(writer, two, score=1), report(writer, one, two, score=1)
    report(writer, feedback="of no record")

    def ids(**wanted: str) -> set[str]:
        return {json.loads(line)["agent_record_id"] for line in lines(writer.path, **wanted)}

    assert ids(since="2026-02-01T00:00:00.000Z") == {two, three, alone}
    assert ids(session="a") == {one, two, alone, both}
    assert ids(scenario="other") == {three}
    assert len(ids()) == 6


def test_calls_that_run_and_bodies_that_are_damaged_are_counted_and_left_out(writer: Writer) -> None:
    opened(writer)
    good, bad = recorded(writer, b'{"messages":["good"]}'), recorded(writer, b'{"messages":["bad"]}')
    report(writer, bad, score=1)
    spoil = "UPDATE records SET request_hash = x'00' WHERE id = ?"
    writer.submit(lambda conn: conn.execute(spoil, (bytes.fromhex(bad),)) and None).result(60)
    reader = Reader(writer.path)
    export = reader.export()
    assert [json.loads(line)["agent_record_id"] for line in export] == [good]
    assert (export.running, export.damaged) == (1, [bad])
    reader.close()


def test_an_import_is_found_in_the_list_of_sessions(writer: Writer, empty: Writer) -> None:
    recorded(writer, session="s1", adapter="pi", started_at="2026-01-01T00:00:00.000Z")
    recorded(writer, session="s1", adapter="pi", started_at="2026-01-02T00:00:00.000Z")
    bring(empty, lines(writer.path))
    reader = Reader(empty.path)
    [found] = reader.sessions()
    reader.close()
    assert (found["key"], found["adapter"], found["calls"]) == ("s1", "pi", 2)
    assert (found["opened_at"], found["closed_at"]) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")


def columns(store: Path) -> list[str]:
    return list(stored(store)[0])


def stored(store: Path) -> list[dict[str, Any]]:
    connection = sqlite3.connect(store)
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute("SELECT * FROM records ORDER BY sequence")]
    connection.close()
    return found


def revise(writer: Writer, id: str, **said: Any) -> None:
    writer.submit(lambda conn: revise_report(conn, id, said, "person")).result(60)
