"""A responses stream folds into the reply of its last event, and into all that was said where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.gateway.responses import ResponsesDialect
from reef.gateway.responses_fold import body_of_text

MESSAGE = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
CALL = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "bash"}


def fold(*events: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The facts and the reply of a stream of these events."""
    found = ResponsesDialect().fold()
    for event in events:
        found.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    facts = found.facts(finished=True)
    return facts, json.loads(facts.body or b"{}")


def delta(kind: str, text: str, **where: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": text, **where}


def completed(*output: Any, **more: Any) -> dict[str, Any]:
    response = {"id": "r", "object": "response", "status": "completed", "output": list(output), **more}
    return {"type": "response.completed", "response": response}


def test_the_last_events_reply_is_kept_as_it_is() -> None:
    item = {**MESSAGE, "content": [{"type": "output_text", "text": "final", "annotations": []}], "x_new": [1, None]}
    facts, reply = fold(
        delta("output_text", "dra", output_index=0, item_id="m1", content_index=0),
        delta("output_text", "ft", output_index=0, item_id="m1", content_index=0),
        completed(item, usage={"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}),
    )
    assert reply == completed(item)["response"] | {"usage": reply["usage"]}
    assert (facts.ended, facts.finish_reason, facts.preview) == (True, "completed", "final")
    assert (facts.prompt_tokens, facts.completion_tokens, facts.cached_tokens) == (3, 2, 1)


def test_without_a_last_event_the_pieces_are_the_reply() -> None:
    created = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
    facts, reply = fold(
        created,
        {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}},
        delta("output_text", "a", output_index=0, item_id="m1", content_index=0),
        delta("function_call_arguments", '{"x"', output_index=1, item_id="f1"),
        delta("output_text", "b", output_index=0, item_id="m1", content_index=0),
        delta("function_call_arguments", ":1}", output_index=1, item_id="f1"),
        delta("refusal", "no", output_index=0, item_id="m1", content_index=1),
        delta("reasoning_summary_text", "hm", output_index=2, summary_index=0),
        {"type": "response.something.new", "output_index": 7, "x": 1},
    )
    assert not facts.ended and facts.preview == "ab"
    assert reply["output"] == [
        {**MESSAGE, "content": [{"type": "output_text", "text": "ab"}, {"type": "refusal", "refusal": "no"}]},
        {**CALL, "arguments": '{"x":1}'},
        {"summary": [{"type": "summary_text", "text": "hm"}]},
    ]


def test_events_without_an_index_are_joined_by_the_items_id() -> None:
    """llama.cpp sends no indexes."""
    _, reply = fold(
        {"type": "response.output_item.added", "item": {**MESSAGE, "content": []}},
        {"type": "response.content_part.added", "item_id": "m1", "part": {"type": "output_text", "text": ""}},
        delta("output_text", "one ", item_id="m1"),
        {"type": "response.output_item.added", "item": {**CALL, "arguments": ""}},
        delta("function_call_arguments", "{}", item_id="f1"),
        delta("output_text", "two", item_id="m1"),
    )
    assert reply["output"][0]["content"] == [{"type": "output_text", "text": "one two"}]
    assert reply["output"][1]["arguments"] == "{}"


def test_what_the_last_event_leaves_empty_is_filled_in_once() -> None:
    full = {**CALL, "arguments": '{"pattern":"*.py"}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": full}
    for output in ((), ({**CALL, "arguments": ""},), ({**CALL, "arguments": "{}"},), (full,)):
        facts, reply = fold(done, completed(*output))
        assert reply["output"] == [full] and facts.bad_arguments == ()
    _, reply = fold({**done, "item": {**CALL, "arguments": "{}"}}, completed(full))
    assert reply["output"] == [full]


def test_interleaved_calls_do_not_share_their_arguments() -> None:
    _, reply = fold(
        *(
            delta("function_call_arguments", piece, output_index=index, item_id=f"f{index}")
            for index, piece in ((0, '{"a"'), (1, '{"b"'), (0, ":1}"), (1, ":2}"))
        )
    )
    assert [item["arguments"] for item in reply["output"]] == ['{"a":1}', '{"b":2}']


def test_errors_are_found_in_every_form() -> None:
    for event in (
        {"type": "error", "code": "x", "message": "no"},
        {"type": "error", "error": {"message": "no"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "no"}, "output": []}},
        {"type": "", "error": "no"},
    ):
        assert fold(event)[0].error == "no"
    assert ResponsesDialect().read_reply(b'{"error":{"message":"no"}}').error == "no"
    assert ResponsesDialect().read_reply(b'{"status":"failed","error":null}').error
    assert ResponsesDialect().read_reply(b"<html>").error


def test_a_long_text_in_many_pieces_is_folded_in_linear_time() -> None:
    found = ResponsesDialect().fold()
    piece = json.dumps(delta("output_text", "x" * 20, output_index=0, content_index=0)).encode()
    for _ in range(100_000):
        found.feed(b"data: " + piece + b"\n\n")
    reply = json.loads(found.facts(finished=True).body or b"")
    assert len(reply["output"][0]["content"][0]["text"]) == 2_000_000


def test_nothing_that_a_server_may_send_breaks_the_fold() -> None:
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "output_index": -1, "content_index": -5, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 10**9, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": True, "delta": 5},
        {"type": "response.output_item.done", "output_index": 0, "item": {"content": "text"}},
        {"type": "response.content_part.added", "output_index": 0, "part": None},
        {"type": "response.output_text.done", "output_index": 0, "text": None},
        {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {"a": 1}},
        {"type": 5, "response": None},
        {"type": "response.completed", "response": {"output": [None, 5, {"type": "message", "content": 5}]}},
    ]
    facts, _ = fold(*events)
    assert facts.ended


@pytest.mark.parametrize("status,reason", [("in_progress", None), ("queued", None), ("cancelled", "cancelled")])
def test_a_response_that_has_not_ended_has_no_reason_for_its_end(status: str, reason: str | None) -> None:
    facts, _ = fold({"type": "response.created", "response": {"id": "r", "status": status, "output": [MESSAGE]}})
    assert (facts.ended, facts.finish_reason) == (False, reason)


def test_what_was_flushed_before_a_crash_becomes_a_reply() -> None:
    facts = ResponsesDialect().read_reply(body_of_text("hällo\nmore".encode()))
    assert (facts.preview, facts.finish_reason) == ("hällo", None)


def test_the_requests_facts() -> None:
    body = {
        "model": "m",
        "instructions": "be brief",
        "stream": True,
        "max_output_tokens": 9,
        "prompt_cache_key": "session",
        "tools": [{"type": "namespace"}, {"type": "function"}],
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "the words\nmore"}]},
            {"type": "function_call_output", "call_id": "c", "output": "result"},
        ],
    }
    facts = ResponsesDialect().read_request(json.dumps(body).encode())
    assert (facts.model, facts.stream, facts.session, facts.preview) == ("m", True, "session", "the words")
    assert (facts.tools, facts.system, facts.max_tokens, facts.lacks_model) == (2, "be brief", 9, False)
    plain = ResponsesDialect().read_request(b'{"input":"just text"}')
    assert (plain.preview, plain.lacks_model, plain.tools) == ("just text", True, 0)
