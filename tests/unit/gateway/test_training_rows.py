"""Recorded calls as rows for training: every dialect as a chat, and pairs of answers that were rated apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reef.gateway.training_rows import Rows
from reef.records import reports
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

TOOL = {"name": "bash", "description": "runs", "parameters": {"type": "object", "properties": {}}}
ASKED = [{"role": "user", "content": "two and two?"}]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "reef.db")
    yield made
    made.close()


@pytest.fixture
def rows(writer: Writer) -> Iterator[Rows]:
    reader = Reader(writer.path)
    yield Rows(reader)
    reader.close()


def call(writer: Writer, answer: str, messages: Any = ASKED, **more: Any) -> str:
    request = json.dumps({"model": "m", "messages": messages} | more).encode()
    reply = {"choices": [{"message": {"role": "assistant", "content": answer, "refusal": None}}]}
    return recorded(writer, request, json.dumps(reply).encode())


def rate(writer: Writer, score: float, *receipts: str, source: Any = "person") -> None:
    body = {"score": score, "references": list(receipts)}
    writer.submit(lambda conn: reports.store_report(conn, "default", body, source)).result(30)


def test_a_complete_call_is_one_row_with_its_answer_last(writer: Writer, rows: Rows) -> None:
    tools = [{"type": "function", "function": TOOL}]
    call(writer, "4", tools=tools)
    assert list(rows.chats()) == [{"messages": [*ASKED, {"role": "assistant", "content": "4"}], "tools": tools}]


def test_calls_of_every_dialect_become_the_same_chat(writer: Writer, rows: Rows) -> None:
    messages = {
        "model": "m", "max_tokens": 9, "system": "be brief", "messages": ASKED,
        "tools": [{"name": "bash", "description": "runs", "input_schema": TOOL["parameters"]}],
    }  # fmt: skip
    reply = {
        "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "look"}, {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}],
    }  # fmt: skip
    recorded(writer, json.dumps(messages).encode(), json.dumps(reply).encode(), dialect="messages")
    responses = {
        "model": "m", "instructions": "be brief", "input": [{"role": "user", "content": "two and two?"}],
        "tools": [{"type": "function", **TOOL}],
    }  # fmt: skip
    output = {
        "id": "resp_1", "status": "completed", "model": "m",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "look"}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"},
        ],
    }  # fmt: skip
    recorded(writer, json.dumps(responses).encode(), json.dumps(output).encode(), dialect="responses")
    for row in rows.chats():
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        assert row["messages"][0]["content"] == "be brief"
        answer = row["messages"][-1]
        assert answer["content"] == "look"
        assert answer["tool_calls"][0]["function"] == {"name": "bash", "arguments": "{}"}
        assert row["tools"][0]["function"]["name"] == "bash"
    assert rows.left_out == 0


def test_rows_are_of_the_calls_that_were_asked_for(writer: Writer, rows: Rows) -> None:
    request = json.dumps({"messages": ASKED}).encode()
    for day, session in (("01", "a"), ("02", "a"), ("03", "b")):
        reply = json.dumps({"choices": [{"message": {"content": day}}]}).encode()
        recorded(writer, request, reply, session=session, started_at=f"2026-01-{day}T00:00:00.000Z")

    def answers(**wanted: str) -> list[str]:
        return [row["messages"][-1]["content"] for row in Rows(rows.reader, **wanted).chats()]

    assert answers(since="2026-01-02T00:00:00.000Z") == ["02", "03"]
    assert answers(session="a") == ["01", "02"]
    assert answers(scenario="default") == ["01", "02", "03"]


def test_what_is_no_whole_turn_is_left_out_and_counted(writer: Writer, rows: Rows) -> None:
    good = call(writer, "4")
    recorded(writer, b'{"messages":[]}', b"{}")
    recorded(writer, b"no json", b"{}")
    recorded(writer, b'{"input":"on"}', b'{"output":[]}', dialect="responses", follows="resp_0")
    recorded(writer, b"{}", b"{}", dialect="unknown")
    settled(writer, opened(writer, b'{"messages":[]}'), "failed")
    recorded(writer, side_call=True)
    assert len(list(rows.chats())) == 1
    assert rows.left_out == 4
    assert good


def test_a_pair_is_one_conversation_with_two_answers_that_were_rated_apart(writer: Writer, rows: Rows) -> None:
    best, worst, middle = call(writer, "4"), call(writer, "5"), call(writer, "22")
    other = call(writer, "Paris", [{"role": "user", "content": "capital?"}])
    unrated, same = call(writer, "7"), call(writer, "4")
    rate(writer, 1, best)
    rate(writer, 0, worst)
    rate(writer, 0.5, middle, source="program")
    rate(writer, 0, other)
    rate(writer, 0, same)
    rate(writer, 0, unrated, source="agent")
    found = list(rows.pairs())
    assert sorted(row["rejected"][0]["content"] for row in found) == ["22", "5"]
    assert {(row["chosen"][0]["content"], row["prompt"][0]["content"]) for row in found} == {("4", "two and two?")}
    assert {tuple(row) for row in found} == {("prompt", "chosen", "rejected")}


def test_a_change_of_mind_counts_with_its_last_value_and_session_ratings_make_no_pairs(
    writer: Writer, rows: Rows
) -> None:
    one, two = call(writer, "4"), call(writer, "5")
    rate(writer, 1, one)
    rate(writer, 1, two)
    rate(writer, 0, one, two)
    assert list(rows.pairs()) == []
    rate(writer, 0, one)
    assert [row["chosen"][0]["content"] for row in rows.pairs()] == ["5"]
