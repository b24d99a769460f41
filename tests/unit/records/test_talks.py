"""A session as one conversation, and the list of sessions, those that only their calls name among them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.errors import NotFound
from reef.records import rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled
from tests.unit.records.test_search import SYSTEM, asking, said, saying

Row = dict[str, Any]


def calling(name: str, id: str, **arguments: str) -> Row:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def answer(message: Row) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()


def called(writer: Writer, request: bytes, response: bytes, preview: str) -> str:
    """A complete call of session `s`."""
    receipt = opened(writer, request, session="s")
    settled(writer, receipt, response=response, answer_preview=preview)
    return receipt


def rate(writer: Writer, receipt: str, score: float) -> None:
    body = {"references": [receipt], "score": score}
    writer.submit(lambda conn: store_report(conn, "default", body, "person")).result(30)


def brief(reader: Reader, session: str) -> list[tuple[str, str]]:
    return [(message["role"], message["text"]) for message in reader.talk(session)["messages"]]


def test_the_longest_call_is_the_conversation_and_later_ones_add_to_it(writer: Writer, reader: Reader) -> None:
    look, result = calling("grep", "t1", pattern="flaky"), {"role": "tool", "tool_call_id": "t1", "content": "a\nb"}
    first = called(writer, asking(SYSTEM, "yes"), answer(look), 'grep({"pattern": "flaky"})')
    found = [SYSTEM, {"role": "user", "content": "yes"}, look, result]
    second = called(writer, asking(*found), saying("found it"), "found it")
    third = called(writer, asking(*found, said("found it"), "yes"), saying("done"), "done")
    short = called(writer, asking(SYSTEM, "a summary", "go on"), saying("I go on"), "I go on")
    recorded(writer, asking("a title?"), saying("Title"), session="s", side_call=True)
    rate(writer, first, -1)
    talk = reader.talk("s")
    assert brief(reader, "s") == [
        ("system", SYSTEM["content"]),
        ("user", "yes"),
        ("assistant", ""),
        ("assistant", "found it"),
        ("user", "yes"),
        ("assistant", "done"),
        ("user", "a summary"),
        ("user", "go on"),
        ("assistant", "I go on"),
    ]
    answers = [message for message in talk["messages"] if message["role"] == "assistant"]
    assert [message["agent_record_id"] for message in answers] == [first, second, third, short]
    assert answers[0]["calls"] == [{"name": "grep", "arguments": '{"pattern": "flaky"}', "result": "a\nb"}]
    assert [message["score"] for message in answers] == [-1, None, None, None]
    assert (talk["apart"], talk["cut"], talk["session"]["calls"]) == ([], False, 5)


def test_a_subagents_calls_stay_apart(writer: Writer, reader: Reader) -> None:
    other = called(writer, asking("look around"), saying("I looked"), "I looked")
    recorded(writer, asking("a long question of the person", said("hm"), "go on"), saying("yes"), session="s")
    talk = reader.talk("s")
    assert [row["agent_record_id"] for row in talk["apart"]] == [other]
    assert "look around" not in str(talk["messages"])


def test_a_conversation_that_a_server_holds_is_put_together_from_all_calls(writer: Writer, reader: Reader) -> None:
    def turn(question: str, reply: str, **fields: Any) -> None:
        request = {"input": question} | ({"previous_response_id": fields["follows"]} if "follows" in fields else {})
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": reply}]}]
        receipt = opened(writer, json.dumps(request).encode(), session="s", dialect="responses", **fields)
        settled(writer, receipt, response=json.dumps({"output": output}).encode())

    turn("a very long first question", "one")
    turn("two?", "two", follows="r1")
    assert [text for _, text in brief(reader, "s")] == ["a very long first question", "one", "two?", "two"]


def test_a_failed_call_and_one_without_bodies_are_shown_as_far_as_they_go(writer: Writer, reader: Reader) -> None:
    settled(writer, opened(writer, asking("try"), session="s"), "failed", error="no such model")
    last = reader.talk("s")["messages"][-1]
    assert (last["state"], last["error"], last["text"]) == ("failed", "no such model", "")
    writer.submit(lambda conn: conn.execute("UPDATE records SET request_part = NULL")).result(30)
    assert [message["role"] for message in reader.talk("s")["messages"]] == ["assistant"]


def test_sessions_are_listed_newest_first_with_those_that_only_calls_name(writer: Writer, reader: Reader) -> None:
    def open_one(**fields: Any) -> str:
        return writer.submit(lambda conn: rows.open_session(conn, "default", **fields)).result(30)

    agent = open_one(adapter="pi", cwd="/work")
    step = open_one(kind="step", step=1)
    recorded(writer, session="by-hand", scenario="default", adapter="x", started_at="2026-01-01T00:00:00.000Z")
    recorded(writer, session="by-hand", scenario="other", started_at="2026-01-02T00:00:00.000Z")
    recorded(writer, session=agent, started_at="2999-01-01T00:00:00.000Z")
    recorded(writer, session=step)
    listed = reader.sessions()
    assert [(row["id"], row["key"], row["scenario"], row["calls"]) for row in listed] == [
        (agent, agent, "default", 1),
        (None, "by-hand", "other", 1),
        (None, "by-hand", "default", 1),
    ]
    assert (listed[2]["kind"], listed[2]["adapter"], listed[2]["opened_at"]) == (
        "calls",
        "x",
        "2026-01-01T00:00:00.000Z",
    )
    assert [row["id"] for row in reader.sessions(cwd="/work")] == [agent]
    assert [row["id"] for row in reader.sessions(kind="step")] == [step]
    assert [row["key"] for row in reader.sessions(scenario="other")] == ["by-hand"]
    assert [row["id"] for row in reader.sessions(limit=1)] == [agent]
    assert reader.session("by-hand")["scenario"] == "other"
    assert reader.session("by-hand", "default")["calls"] == 1
    assert reader.session(agent)["cwd"] == "/work"
    with pytest.raises(NotFound, match="no session"):
        reader.talk("nobody")
