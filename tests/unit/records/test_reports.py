"""The report protocol: what is stored, what is refused, and that a refusal stores nothing."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest

from reef import events
from reef.errors import Conflict, InvalidInput, NotFound
from reef.ids import new_id
from reef.records.reader import Reader
from reef.records.reports import store_report, withdraw_report
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded


def report(writer: Writer, body: object, scenario: str = "default", source: Any = "person", **more: Any) -> Any:
    return writer.submit(lambda conn: store_report(conn, scenario, body, source, **more)).result(30)


def test_a_report_keeps_its_four_fields_and_drops_the_rest(writer: Writer, reader: Reader) -> None:
    receipts = [recorded(writer), recorded(writer)]
    body = {
        "score": 1, "feedback": {"note": "good", "n": 10**40}, "references": receipts,
        "metadata": {"task": {"name": "t"}}, "colour": "blue",
    }  # fmt: skip
    row, created = report(writer, body)
    assert created
    assert row | {"sequence": 0, "created_at": ""} == {
        "sequence": 0, "id": row["id"], "agent_record_id": row["id"], "scenario": "default", "source": "person",
        "session": None, "score": 1.0, "feedback": {"note": "good", "n": 10**40}, "references": receipts,
        "metadata": {"task": {"name": "t"}}, "scope": "session", "created_at": "", "consumed_by": None,
        "withdrawn_at": None, "revised_at": None, "revisions": [],
    }  # fmt: skip
    assert reader.reports("default") == [row]
    told = reader.events()[-1]
    assert (told["kind"], told["ids"]["report"], told["state"]) == (events.REPORT_STORED, row["id"], "person")


def test_every_field_may_be_missing(writer: Writer) -> None:
    row, _ = report(writer, {})
    assert (row["score"], row["feedback"], row["metadata"], row["references"]) == (None, None, None, [])


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"score": True}, "score must be a number"),
        ({"score": False}, "score must be a number"),
        ({"score": "1"}, "score must be a number"),
        ({"score": [1]}, "score must be a number"),
        ({"score": math.nan}, "finite"),
        ({"score": math.inf}, "finite"),
        ({"score": -math.inf}, "finite"),
        ({"score": 10**400}, "finite"),
        ({"feedback": 3}, "feedback"),
        ({"feedback": ["a"]}, "feedback"),
        ({"feedback": {"a": math.nan}}, "NaN"),
        ({"metadata": "text"}, "metadata"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": [math.inf]}}, "NaN"),
        ({"metadata": {"training": {"eligible": False}}}, "metadata.training.eligible"),
        ({"metadata": {"training": {"eligible": None}}}, "metadata.training.eligible"),
        ({"references": "abc"}, "references"),
        ({"references": {"a": 1}}, "references"),
        ({"references": [3]}, "'int'"),
        ({"references": ["ABCDEF"]}, "'ABCDEF'"),
        ({"references": ["0" * 31]}, "0000"),
        ({"references": [f"{n:032x}" for n in range(10_001)]}, "10001"),
        ({"agent_record_id": "mine"}, "agent_record_id"),
        ({"agent_record_id": 7}, "agent_record_id"),
        ([], "JSON object"),
        (None, "JSON object"),
        ("score", "JSON object"),
    ],
)
def test_a_bad_report_is_refused_by_name_and_nothing_is_stored(
    writer: Writer, reader: Reader, body: object, named: str
) -> None:
    with pytest.raises(InvalidInput, match=named):
        report(writer, body)
    assert reader.reports() == []
    assert reader.events() == []


def test_an_unknown_receipt_is_named_and_nothing_is_stored(writer: Writer, reader: Reader) -> None:
    known, unknown = recorded(writer), new_id()
    with pytest.raises(InvalidInput, match=unknown):
        report(writer, {"score": 1, "references": [known, unknown]})
    assert reader.reports() == []


def test_a_receipt_named_twice_is_refused(writer: Writer) -> None:
    receipt = recorded(writer)
    with pytest.raises(InvalidInput, match=f"{receipt} twice"):
        report(writer, {"references": [receipt, receipt]})


def test_a_receipt_of_another_scenario_is_refused(writer: Writer) -> None:
    receipt = recorded(writer, scenario="elsewhere")
    with pytest.raises(InvalidInput, match="belongs to scenario 'elsewhere'"):
        report(writer, {"references": [receipt]})
    report(writer, {"references": [receipt]}, scenario="elsewhere")


def test_a_report_is_no_receipt(writer: Writer) -> None:
    row, _ = report(writer, {"score": 1})
    with pytest.raises(InvalidInput, match=row["id"]):
        report(writer, {"references": [row["id"]]})


def test_a_call_that_still_runs_can_be_reported_on(writer: Writer) -> None:
    receipt = opened(writer)
    assert report(writer, {"score": 0, "references": [receipt]})[0]["references"] == [receipt]


def test_the_same_id_with_the_same_content_is_one_report(writer: Writer, reader: Reader) -> None:
    receipt, id = recorded(writer), new_id()
    first, created = report(
        writer, {"agent_record_id": id, "score": 1, "metadata": {"a": 1, "b": 2}, "references": [receipt]}
    )
    told = reader.last_event()
    again, repeated = report(
        writer, {"references": [receipt], "metadata": {"b": 2, "a": 1}, "score": 1.0, "agent_record_id": id, "x": 1}
    )
    assert (created, repeated, again) == (True, False, first)
    assert len(reader.reports()) == 1
    assert reader.last_event() == told


def test_the_same_id_with_other_content_is_refused_and_changes_nothing(writer: Writer, reader: Reader) -> None:
    receipt, id = recorded(writer), new_id()
    body = {"agent_record_id": id, "score": 1, "references": [receipt]}
    stored, _ = report(writer, body)
    for other in (body | {"score": 0}, body | {"feedback": "changed"}, body | {"references": []}):
        with pytest.raises(Conflict, match=id) as refused:
            report(writer, other)
        assert refused.value.hint == f"reef records show {receipt}", "the record that shows the report"
    with pytest.raises(Conflict) as refused:
        report(writer, {"agent_record_id": id, "score": 1}, scenario="elsewhere")
    assert refused.value.hint == "reef report --help"
    assert reader.reports() == [stored]
    assert reader.record(receipt)["score"] == 1


def test_the_id_of_a_record_cannot_be_used_for_a_report(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    with pytest.raises(Conflict, match="record"):
        report(writer, {"agent_record_id": receipt, "score": 1})
    assert reader.reports() == []


def test_a_uuid_with_dashes_is_taken_as_an_id(writer: Writer) -> None:
    id = uuid.uuid4()
    assert report(writer, {"agent_record_id": str(id).upper()})[0]["id"] == id.hex


def test_what_the_person_the_agent_and_a_program_say_is_kept_apart(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    report(writer, {"score": 1, "references": [receipt]}, source="agent", session="s")
    assert (reader.record(receipt)["score"], reader.record(receipt)["agent_score"]) == (None, 1)
    report(writer, {"score": -1, "references": [receipt]}, source="person")
    report(writer, {"score": 0.5, "references": [receipt]}, source="program")
    record = reader.record(receipt)
    assert (record["score"], record["agent_score"], record["program_score"]) == (-1, 1, 0.5)


def test_the_latest_score_counts_and_a_note_without_one_does_not_hide_it(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    for body in ({"score": 1}, {"score": -1}, {"feedback": "only words"}):
        report(writer, body | {"references": [receipt]})
    assert reader.record(receipt)["score"] == -1
    assert len(reader.reports(record=receipt)) == 3


def test_a_withdrawn_report_counts_nowhere_and_stays_readable(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    good, _ = report(writer, {"score": 1, "references": [receipt]})
    bad, _ = report(writer, {"score": -1, "references": [receipt]})
    gone = writer.submit(lambda conn: withdraw_report(conn, bad["id"])).result(30)
    assert gone["withdrawn_at"] is not None
    assert reader.record(receipt)["score"] == 1
    assert [row["id"] for row in reader.reports(record=receipt)] == [bad["id"], good["id"]]
    assert [row["id"] for row in reader.reports(withdrawn=False)] == [good["id"]]
    told = reader.last_event()
    assert writer.submit(lambda conn: withdraw_report(conn, bad["id"])).result(30) == gone
    assert reader.last_event() == told


def test_a_session_takes_back_only_its_own_reports(writer: Writer) -> None:
    persons, _ = report(writer, {"score": 1})
    agents, _ = report(writer, {"score": 1}, source="agent", session="mine")
    for id, session in ((persons["id"], "mine"), (agents["id"], "other"), (new_id(), "mine")):
        with pytest.raises(NotFound):
            writer.submit(lambda conn, id=id, session=session: withdraw_report(conn, id, "agent", session)).result(30)
    assert writer.submit(lambda conn: withdraw_report(conn, agents["id"], "agent", "mine")).result(30)["withdrawn_at"]


def test_words_that_sqlite_cannot_hold_survive(writer: Writer, reader: Reader) -> None:
    row, _ = report(writer, {"feedback": "broken \ud800 half \U0001f600 \0 end"})
    assert reader.reports()[0]["feedback"] == row["feedback"] == "broken \ud800 half \U0001f600 \0 end"


def test_no_key_of_a_report_is_stored_and_the_same_report_is_the_same_again(writer: Writer, reader: Reader) -> None:
    key = "sk-" + "a1B2" * 6
    body = {
        "agent_record_id": new_id(), "score": 1,
        "feedback": {"said": [f"use {key}"]}, "metadata": {key: "-----BEGIN PRIVATE KEY-----", "task": {"name": "t"}},
    }  # fmt: skip
    row, created = report(writer, body)
    assert created and report(writer, body) == (row, False)
    assert row["feedback"] == {"said": ["use [redacted:openai-key]"]}
    assert row["metadata"] == {"[redacted:openai-key]": "[redacted:private-key]", "task": {"name": "t"}}
    assert body["feedback"] == {"said": [f"use {key}"]}
    with pytest.raises(Conflict):
        report(writer, body | {"score": 0})
    for file in writer.path.parent.glob("reef.db*"):
        assert key.encode() not in file.read_bytes()
