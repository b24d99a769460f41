"""A messages stream folds into the message that it would have been without streaming."""

from __future__ import annotations

import json
from typing import Any

from reef.gateway.messages import MessagesDialect, TokenCountDialect
from reef.gateway.messages_fold import body_of_text
from reef.gateway.scan import SCAN_ABOVE

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 3,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def fold(*events: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The facts and the reply of a stream of these events."""
    found = MessagesDialect().fold()
    for event in events:
        found.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    facts = found.facts(finished=True)
    return facts, json.loads(facts.body or b"{}")


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def test_text_thinking_tools_and_usage_are_joined() -> None:
    facts, reply = fold(
        START,
        begin(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm "),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="c2Vh"),
        begin(1, type="text", text=""),
        {"type": "ping"},
        delta(1, "text_delta", text="Hel"),
        delta(1, "text_delta", text="lo"),
        delta(1, "citations_delta", citation={"cited_text": "x"}),
        begin(2, type="tool_use", id="t", name="bash", input={}),
        delta(2, "input_json_delta", partial_json='{"command"'),
        delta(2, "input_json_delta", partial_json=':"ls"}'),
        begin(3, type="server_new_thing", x=[1]),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None, "container": {"id": "c"}},
            "usage": {"output_tokens": 12, "input_tokens": None},
            "context_management": {"applied_edits": []},
        },
        STOP,
    )
    assert reply["content"] == [
        {"type": "thinking", "thinking": "hm hm", "signature": "c2Vh"},
        {"type": "text", "text": "Hello", "citations": [{"cited_text": "x"}]},
        {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls"}},
        {"type": "server_new_thing", "x": [1]},
    ]
    assert (reply["stop_reason"], reply["container"]) == ("tool_use", {"id": "c"})
    assert reply["context_management"] == {"applied_edits": []}
    assert reply["usage"] == {**START["message"]["usage"], "output_tokens": 12}  # type: ignore[index]
    assert (facts.ended, facts.finish_reason, facts.preview) == (True, "tool_use", "Hello")
    # The cached part of a prompt is part of the prompt.
    assert (facts.prompt_tokens, facts.cached_tokens, facts.completion_tokens) == (28, 20, 12)


def test_interleaved_fragments_stay_with_their_block_and_none_at_all_is_an_empty_object() -> None:
    facts, reply = fold(
        START,
        *(begin(index, type="tool_use", id=f"t{index}", name="w", input={}) for index in (1, 2, 3)),
        *(
            delta(index, "input_json_delta", partial_json=piece)
            for index, piece in ((1, '{"a"'), (2, '{"b"'), (1, ":1}"), (2, ":2}"))
        ),
        STOP,
    )
    assert [block["input"] for block in reply["content"]] == [{"a": 1}, {"b": 2}, {}]
    assert facts.bad_arguments == ()


def test_input_that_is_no_json_stays_the_text_that_it_was() -> None:
    facts, reply = fold(
        START,
        begin(0, type="tool_use", id="t", name="write", input={}),
        delta(0, "input_json_delta", partial_json='{"path":"a'),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}},
        STOP,
    )
    assert (reply["content"][0]["input"], facts.bad_arguments) == ('{"path":"a', ("write",))
    assert facts.finish_reason == "max_tokens"


def test_errors_are_found_in_every_form() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    facts, reply = fold(error)
    assert (facts.error, facts.ended, reply["error"]["message"]) == ("Overloaded", False, "Overloaded")
    facts, reply = fold(START, begin(0, type="text", text="so far"), error)
    assert (facts.error, facts.preview, facts.ended) == ("Overloaded", "so far", False)
    assert MessagesDialect().read_reply(json.dumps(error).encode()).error == "Overloaded"


def test_nothing_that_a_server_may_send_breaks_the_fold() -> None:
    facts, _ = fold(
        {"type": "message_start", "message": None},
        begin(0, type="text", text=None),
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_delta", "index": "0", "delta": {"text": "x"}},
        {"type": "content_block_delta", "index": 9, "delta": None},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": 5}},
        delta(4, "text_delta", text="no start"),
        {"type": "message_delta", "delta": None, "usage": None},
        {"type": 7, "index": 0},
        STOP,
    )
    assert facts.ended and facts.preview == "no start"


def test_what_was_flushed_before_a_crash_becomes_a_message() -> None:
    assert MessagesDialect().read_reply(body_of_text(b"so far\nmore")).preview == "so far"


def request(*content: Any, **more: Any) -> bytes:
    """A request whose user messages have these contents."""
    turns = [{"role": "user", "content": part} for part in content]
    return json.dumps({"model": "m", "max_tokens": 9, "messages": turns, **more}).encode()


def test_the_requests_facts() -> None:
    user = json.dumps({"device_id": "d", "session_id": "s-1"})
    system = [{"type": "text", "text": "You are"}, {"type": "text", "text": "an agent"}]
    body = request("hi\nthere", system=system, metadata={"user_id": user}, tools=[{"name": "a"}], stream=True)
    facts = MessagesDialect().read_request(body)
    assert (facts.model, facts.stream, facts.session, facts.preview) == ("m", True, "s-1", "hi")
    assert (facts.tools, facts.system, facts.max_tokens) == (1, "You are\nan agent", 9)


def test_the_preview_passes_over_what_the_agent_says_in_the_users_name() -> None:
    reminder = {"type": "text", "text": "<system-reminder>\nrules\n</system-reminder>"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "output"}]}
    words = {"type": "text", "text": "fix the test"}
    read = MessagesDialect().read_request
    assert read(request("first", [reminder, words], [result], [result, reminder])).preview == "fix the test"
    assert read(request([reminder])).preview == ""
    big = {"type": "tool_result", "tool_use_id": "t", "content": "x" * SCAN_ABOVE}
    assert read(request("first", [reminder, words], [big], [result, reminder])).preview == "fix the test"


def test_a_token_count_is_read_as_the_prompts_tokens() -> None:
    facts = TokenCountDialect().read_reply(b'{"input_tokens": 12}')
    assert (facts.prompt_tokens, facts.completion_tokens, facts.preview) == (12, None, "12 tokens")
    assert TokenCountDialect().read_reply(b'{"type":"error","error":{"message":"no"}}').error == "no"
