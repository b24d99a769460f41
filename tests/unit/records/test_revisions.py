"""A change of mind about a report: the last value counts once, what was said before stays readable."""

from __future__ import annotations

from typing import Any

import pytest

from reef import events
from reef.errors import Conflict, Forbidden, InvalidInput, NotFound
from reef.ids import new_id
from reef.records.reader import Reader
from reef.records.reports import store_report, withdraw_report
from reef.records.revisions import revise_report, undo_revision
from reef.records.writer import Writer
from tests.unit.records.calling import recorded


def report(writer: Writer, body: Any, source: Any = "person", session: str | None = None) -> Any:
    return writer.submit(lambda conn: store_report(conn, "default", body, source, session=session)).result(30)[0]


def revise(writer: Writer, id: str, changes: Any, source: Any = "person", session: str | None = None) -> Any:
    return writer.submit(lambda conn: revise_report(conn, id, changes, source, session)).result(30)


def undo(writer: Writer, id: str, number: int, source: Any = "person", session: str | None = None) -> Any:
    return writer.submit(lambda conn: undo_revision(conn, id, number, source, session)).result(30)


def history(row: dict[str, Any]) -> list[tuple[int, float | None, object, bool]]:
    return [(one["number"], one["score"], one["feedback"], one["undone_at"] is not None) for one in row["revisions"]]


def test_the_last_value_counts_once_and_the_earlier_ones_stay_readable(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    first = report(writer, {"score": 1, "feedback": "good", "references": [receipt], "metadata": {"a": 1}})
    for score in (0.5, 0):
        row, _ = revise(writer, first["id"], {"score": score, "feedback": None})
    assert (row["score"], row["feedback"], row["metadata"]) == (0, None, {"a": 1})
    assert history(row) == [(0, 1, "good", False), (1, 0.5, None, False), (2, 0, None, False)]
    assert row["revisions"][0]["at"] == first["created_at"]
    assert [one["id"] for one in reader.reports(record=receipt)] == [first["id"]], "one report, however often revised"
    assert reader.record(receipt)["score"] == 0
    assert reader.report(first["id"]) == row
    told = reader.events()[-1]
    ids = {"report": first["id"], "records": [receipt], "revision": 2}
    assert (told["kind"], told["ids"], told["state"]) == (events.REPORT_REVISED, ids, "person")


def test_the_same_value_again_is_no_revision(writer: Writer, reader: Reader) -> None:
    first = report(writer, {"score": 1})
    told = reader.last_event()
    assert revise(writer, first["id"], {"score": 1.0}) == (first, 0)
    _, number = revise(writer, first["id"], {"score": 0})
    assert revise(writer, first["id"], {"score": 0})[1] == number == 1
    assert reader.last_event() == told + 1


def test_a_retry_of_a_report_that_was_revised_since_is_still_the_same_report(writer: Writer) -> None:
    body = {"agent_record_id": new_id(), "score": 1}
    report(writer, body)
    row, _ = revise(writer, body["agent_record_id"], {"score": 0})
    assert report(writer, body) == row, "the retry neither brings the old value back nor makes a second report"
    with pytest.raises(Conflict):
        report(writer, body | {"score": 0})


def test_undoing_brings_the_value_before_back_and_leaves_what_was_said_readable(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    id = report(writer, {"score": 1, "references": [receipt]})["id"]
    revise(writer, id, {"score": 0.5})
    revise(writer, id, {"score": 0})
    with pytest.raises(Conflict, match="not its last"):
        undo(writer, id, 1)
    row = undo(writer, id, 2)
    assert (row["score"], history(row)[-1]) == (0.5, (2, 0, None, True))
    told = reader.last_event()
    assert undo(writer, id, 2) == row and reader.last_event() == told, "undone twice is undone once"
    assert undo(writer, id, 1)["revised_at"] is None
    assert reader.record(receipt)["score"] == 1
    row, number = revise(writer, id, {"score": 0.25})
    assert (number, row["score"]) == (3, 0.25), "a number is never used again"
    assert undo(writer, id, 3)["score"] == 1
    for missing in (0, 4):
        with pytest.raises(NotFound, match=f"no revision {missing}"):
            undo(writer, id, missing)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"score": True}, "score must be a number"),
        ({"score": 10**400}, "finite"),
        ({"feedback": 3}, "feedback"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"training": {"eligible": False}}}, "metadata.training.eligible"),
        ({"score": 0, "references": ["0" * 32]}, "references"),
        ({"colour": "blue"}, "needs a score"),
        ([], "JSON object"),
    ],
)
def test_a_bad_revision_is_refused_by_name_and_changes_nothing(
    writer: Writer, reader: Reader, changes: object, named: str
) -> None:
    first = report(writer, {"score": 1})
    with pytest.raises(InvalidInput, match=named):
        revise(writer, first["id"], changes)
    assert reader.reports() == [first]


def test_the_person_revises_any_report_a_session_its_own_and_a_program_a_programs(writer: Writer) -> None:
    owners = {"person": None, "program": None, "agent": "mine"}
    made = {source: report(writer, {"score": 1}, source, session)["id"] for source, session in owners.items()}
    for source, id in made.items():
        assert revise(writer, id, {"score": 0.5})[0]["source"] == source, "whose report it is stays"
    assert revise(writer, made["program"], {"score": 0}, "program")[0]["score"] == 0
    assert revise(writer, made["agent"], {"score": 0}, "agent", "mine")[0]["score"] == 0
    for id in (made["person"], made["program"]):
        with pytest.raises(NotFound):
            revise(writer, id, {"score": 0}, "agent", "mine")
    with pytest.raises(NotFound):
        revise(writer, made["agent"], {"score": 0}, "agent", "other")
    for id in (made["person"], made["agent"]):
        with pytest.raises(Forbidden, match=id):
            revise(writer, id, {"score": 0}, "program")
        with pytest.raises(Forbidden, match=id):
            writer.submit(lambda conn, id=id: withdraw_report(conn, id, "program")).result(30)


def test_a_report_that_was_taken_back_cannot_be_revised(writer: Writer) -> None:
    id = report(writer, {"score": 1})["id"]
    writer.submit(lambda conn: withdraw_report(conn, id)).result(30)
    with pytest.raises(Conflict, match="taken back"):
        revise(writer, id, {"score": 0})


def test_no_key_of_a_revision_is_stored(writer: Writer) -> None:
    key = "sk-" + "a1B2" * 6
    id = report(writer, {"score": 1})["id"]
    row, _ = revise(writer, id, {"feedback": f"use {key}"})
    assert row["feedback"] == "use [redacted:openai-key]"
    for file in writer.path.parent.glob("reef.db*"):
        assert key.encode() not in file.read_bytes()


def test_the_value_that_was_said_last_is_the_score_also_when_it_revises_an_older_report(
    writer: Writer, reader: Reader
) -> None:
    receipt = recorded(writer)
    older = report(writer, {"score": 1, "references": [receipt]})
    report(writer, {"score": 0.5, "references": [receipt]})
    assert reader.record(receipt)["score"] == 0.5
    revise(writer, older["id"], {"score": 0})
    assert reader.record(receipt)["score"] == 0
    shown = reader.query(lambda conn: conn.execute("SELECT score FROM calls").fetchall())
    assert shown == [(0,)], "people who look with other tools see the same"


def test_what_is_said_of_one_answer_is_kept_apart_from_what_is_said_of_several_together(
    writer: Writer, reader: Reader
) -> None:
    receipts = [recorded(writer, session="s"), recorded(writer, session="s")]
    own = report(writer, {"score": 1, "references": receipts[:1]})
    whole = report(writer, {"score": 0, "references": receipts})
    none = report(writer, {"score": 0.5})
    assert [row["scope"] for row in (own, whole, none)] == ["receipt", "session", "scenario"]
    scores = [(reader.record(one)["score"], reader.record(one)["session_score"]) for one in receipts]
    assert scores == [(1, 0), (None, 0)]
