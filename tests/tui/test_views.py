"""Answers as lines: conversations, differences, gates, figures. Pure functions, checked without a screen."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reef.tui import figures
from reef.tui.lines import Block
from reef.tui.views import asks, changes, conversation, records, versions
from tests.fakes.daemon_fake import ask_row, record_row, step_row, version_row


def text(blocks: list[Block]) -> str:
    """Everything a page would show with nothing folded."""
    lines = []
    for block in blocks:
        lines += [block.head.text] if block.head else []
        lines += [line.text for line in block.lines()]
    return "\n".join(lines)


def page(messages: list[dict[str, Any]], reply: object = None, **fields: Any) -> list[Block]:
    body = json.dumps({"messages": messages}).encode()
    answer = None if reply is None else json.dumps(reply).encode()
    return conversation.blocks(record_row(1, "x") | fields, body, answer)


def test_tool_calls_are_paired_with_their_results_wherever_these_stand() -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("one", "two")]
    results = [{"role": "tool", "tool_call_id": name, "content": f"result of {name}"} for name in ("two", "one")]
    found = page([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}, *results])
    heads = {block.key: block for block in found if "call" in block.key}
    assert [block.head.text.strip() for block in heads.values() if block.head] == ["one", "two"]
    assert "result of one" in text([heads["m1-call0"]]) and "result of two" in text([heads["m1-call1"]])
    assert text(found).count("result of one") == 1


def test_a_result_without_a_call_and_a_call_without_a_result_are_said() -> None:
    call = {"id": "a", "function": {"name": "bash", "arguments": "ls"}}
    found = page(
        [{"role": "tool", "tool_call_id": "z", "content": "lost"}, {"role": "assistant", "tool_calls": [call]}]
    )
    briefs = [block.brief.text for block in found if block.brief]
    assert any("no result recorded" in brief for brief in briefs)
    assert "a tool's result without its call" in text(found)


def test_images_are_named_with_kind_and_size() -> None:
    content = [{"type": "text", "text": "look"}, {"image_url": {"url": "data:image/png;base64," + "A" * 40_000}}]
    assert "[image image/png 30 kB]" in text(page([{"role": "user", "content": content}]))


def test_many_earlier_messages_are_folded_into_one_line() -> None:
    messages = [{"role": "user", "content": f"question {n}"} for n in range(40)]
    found = page(messages)
    fold = next(block for block in found if block.key == "earlier")
    assert fold.folded and fold.head is not None and fold.head.text == "39 earlier messages"
    assert sum(block.inside == "earlier" for block in found) == 39


@pytest.mark.parametrize(
    "body", (b"", b"not json", b'{"messages": 3}', b"[1, 2]", b"\xff\xfe", b'{"messages": [1, null]}')
)
def test_a_body_that_is_no_chat_is_shown_and_breaks_nothing(body: bytes) -> None:
    assert conversation.blocks(record_row(1, "x"), body, body)
    assert conversation.raw("request", body)


@pytest.mark.parametrize(
    "message",
    (
        {"role": None, "content": None},
        {"role": "user", "content": 7},
        {"role": "assistant", "tool_calls": "x", "reasoning": 3},
        {"role": "assistant", "tool_calls": [{"function": None}, 5, {}]},
        {"role": "user", "content": [1, None, {"image_url": 3}, {"type": "file"}]},
        {},
    ),
)
def test_malformed_messages_break_nothing(message: dict[str, Any]) -> None:
    found = page([message, {"role": "user", "content": "and then"}], {"choices": [{"message": message}, None, 3]})
    assert "and then" in text(found)


def test_a_reply_that_ended_at_a_limit_is_marked_cut() -> None:
    reply = {"choices": [{"message": {"content": "half a"}}]}
    assert "✂ cut" in text(page([{"role": "user", "content": "x"}], reply, finish_reason="length"))
    assert "✂ broke off" in text(page([{"role": "user", "content": "x"}], reply, state="partial"))


def test_an_answer_that_is_being_given_shows_what_there_is() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    found = text(conversation.blocks(record_row(1, "x") | {"state": "open"}, body, b"The capital of"))
    assert "The capital of" in found and "… still answering" in found


def test_bodies_that_are_gone_are_said_to_be() -> None:
    assert "not stored" in text(conversation.blocks(record_row(1, "x"), None, None))


def test_a_very_long_body_is_cut_with_the_way_to_all_of_it() -> None:
    assert "the export has all of it" in text(conversation.raw("request", b"x" * 1_000_000))


def test_lines_that_are_alike_are_compared_word_by_word_and_others_are_not() -> None:
    lines = changes.hunk_lines("-run the tests after a change\n-zebra\n+run all tests after every change\n+new line\n")
    roles = {role for line in lines for _, role in line.spans}
    assert {"removed-word", "added-word"} <= roles
    assert [line.text for line in lines] == [
        "- run the tests after a change",
        "- zebra",
        "+ run all tests after every change",
        "+ new line",
    ]
    assert all(not role.endswith("-word") for line in lines for text, role in line.spans if "zebra" in text)


def test_a_difference_counts_its_lines() -> None:
    assert changes.counts("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n+z\n w\n") == (2, 1)


def test_code_is_pointed_out_by_its_place() -> None:
    files = [{"path": "harness/extensions/x.ts", "status": "added", "hunks": "+1"}]
    assert "code" in text(changes.blocks(files))
    assert not changes.is_code("harness/rules/x.md")


def test_gates_say_what_passed_failed_and_was_not_tested() -> None:
    groups = [
        {"name": "reach", "status": "fail", "detail": "absent", "seconds": 2},
        {"name": "tasks", "status": "not run", "detail": ""},
        {"name": "odd", "status": "invalid", "detail": "pi did not start"},
    ]
    found = text(asks.gate_blocks({"policy": "reach", "groups": groups}))
    assert "✗ reach" in found and "2.0 s" in found and "not tested: tasks, odd" in found
    assert versions.gate({"groups": groups}) == "✗ reach"
    assert asks.gate_blocks({"groups": 3}) == [] and versions.gate(None) == ""


def test_steps_stand_between_the_versions_they_came_between_once() -> None:
    chain = [version_row(1, "base", created_at="2026-01-01T00:00:00Z"), version_row(2, "x", step=7)]
    steps = [
        step_row(7, "published", version=2),
        step_row(6, "rejected", ended_at="2026-01-02T00:00:00Z"),
    ]
    assert [row.key for row in versions.rows(chain, steps)] == ["v2", "s6", "v1"]


def test_an_ask_leads_to_its_version_or_its_step() -> None:
    assert asks.led_to(ask_row(1, "x", version=3, step=2)) == "→ v3"
    assert asks.led_to(ask_row(1, "x", step=2)) == "s2"
    assert asks.led_to(ask_row(1, "x")) == ""


def test_a_prompt_that_was_likely_cut_says_so_with_both_numbers() -> None:
    record = record_row(1, "fix it") | {"prompt_cut": True, "expected_tokens": 16_000, "prompt_tokens": 2051}
    assert records.present(records.row(record))["session"].lead == ("✂ prompt cut  ", "accent")
    assert "about 16.0k tokens sent, 2,051 counted" in text(page([{"role": "user", "content": "x"}], {}, **record))


def test_what_was_left_out_on_the_way_to_the_model_is_said() -> None:
    ways = {"from": "responses", "to": "chat", "tools_left_out": ["web_search"], "fields_left_out": ["x"]}
    notes = {"rules": {"bytes": 70_000, "cap": 65_536}, "translated": ways}
    shown = text(page([{"role": "user", "content": "x"}], {}, notes=notes))
    assert "the rules have 70 kB, the agent reads 66 kB of them" in shown
    assert "translated from responses to chat, without web_search, x" in shown
    within = {"rules": {"bytes": 70, "cap": 65_536}}
    assert "rules" not in text(page([{"role": "user", "content": "x"}], {}, notes=within))


def test_needs_and_notes_are_words_and_never_python() -> None:
    needs = [{"name": "FOO_TOKEN", "kind": "env"}, {"name": "net", "kind": "permission", "prompt": "may it?"}, "odd"]
    notes = {"proposer": "verbatim", "refusals": [], "receipts": ["a" * 32], "at_all": {"tries": 2, "cut": True}}
    ask = text(asks.blocks(ask_row(1, "x", requires=needs), None))
    version = text(versions.blocks(version_row(2, "x", requires=needs), 1, [], {"step_row": step_row(1, "published")}))
    for page in (ask, version):
        assert "needs  env FOO_TOKEN (not set)" in page and "needs  permission net: may it?" in page
        assert "needs  odd" in page
    step = text(versions.step_blocks(step_row(3, "failed", notes=notes)))
    assert "proposer  verbatim" in step and "receipts  aaaa…aa" in step and "at all  tries: 2 · cut: yes" in step
    assert "refusals" not in step
    report = records.note_of({"feedback": {"tone": "harsh", "again": False}})
    assert report == "tone: harsh · again: no"
    for page in (ask, version, step, report):
        assert not set("{}'") & set(page)


def test_a_published_ask_is_served_now_only_while_its_version_is_the_head() -> None:
    row = ask_row(1, "x", state="published", version=2, meaning="the change is served now")
    assert "the change is served now" in text(asks.blocks(row, None, lambda: asks.Served(head=2)))
    later = text(asks.blocks(row, None, lambda: asks.Served(head=5)))
    assert "it was published as v2; v5 is served now" in later and "the change is served now" not in later


def test_calls_of_a_step_are_labelled_so_whatever_agent_made_them() -> None:
    assert records.agent(record_row(1, "x") | {"source": "step", "adapter": "pi"}) == "step"
    assert records.agent(record_row(1, "x") | {"source": "person", "adapter": None}) == "you"


def test_records_without_figures_show_no_zero() -> None:
    cells = records.present(records.row(record_row(1, "x") | {"prompt_tokens": None, "completion_tokens": None}))
    assert cells["tokens"].text == figures.NOTHING


@pytest.mark.parametrize(
    ("value", "shown"), ((0, "0"), (812, "812"), (9_999, "9,999"), (18_240, "18.2k"), (1_900_000, "1.9M"), (None, "–"))
)
def test_counts(value: object, shown: str) -> None:
    assert figures.count(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    ((12, "12 ms"), (700, "0.7 s"), (48_000, "48 s"), (72_000, "1:12"), (3_840_000, "1 h 04"), ("x", "–")),
)
def test_durations(value: object, shown: str) -> None:
    assert figures.took(value) == shown


def test_times_are_local_today_and_relative_before() -> None:
    now = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
    assert figures.when("2026-05-05T11:58:00Z", now) == "11:58"
    assert figures.when((now - timedelta(days=3)).isoformat(), now) == "3 d"
    assert figures.ago("2026-05-05T11:59:30Z", now) == "30 s"
    assert figures.when("yesterday", now) == figures.when(None, now) == "–"
    assert figures.ago((now + timedelta(hours=1)).isoformat(), now) == "0 s"


def test_scores_are_words_where_they_are() -> None:
    assert [figures.score(value) for value in (1.0, 0.0, -1, 0.5, None)] == ["good", "bad", "bad", "0.5", ""]
