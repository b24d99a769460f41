"""A stream folds into the reply that it would have been."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.errors import InvalidInput
from reef.gateway.chat import ChatDialect
from reef.gateway.chat_fold import ChatFold
from reef.gateway.requests import with_model
from reef.gateway.scan import SCAN_ABOVE


def folded(*chunks: Any, done: bool = True) -> dict[str, Any]:
    fold = ChatFold()
    for chunk in chunks:
        fold.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    if done:
        fold.feed(b"data: [DONE]\n\n")
    facts = fold.facts(finished=True)
    assert facts.ended is done
    found = json.loads(facts.body or b"{}")
    assert isinstance(found, dict)
    return found


def delta(part: dict[str, Any], index: int = 0, finish: str | None = None) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": index, "delta": part, "finish_reason": finish}]}


def test_two_choices_are_joined_apart() -> None:
    reply = folded(
        delta({"role": "assistant", "content": "a"}),
        delta({"role": "assistant", "content": "x"}, 1),
        delta({"content": "b"}),
        delta({"content": "y"}, 1),
        delta({}, 1, "length"),
        delta({}, 0, "stop"),
    )
    assert [choice["message"]["content"] for choice in reply["choices"]] == ["ab", "xy"]
    assert [choice["finish_reason"] for choice in reply["choices"]] == ["stop", "length"]
    assert (reply["id"], reply["object"]) == ("c1", "chat.completion")


def test_interleaved_tool_calls_keep_their_arguments_apart() -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        return delta({"tool_calls": [{"index": index, "function": function}]})

    reply = folded(
        delta({"role": "assistant", "tool_calls": [{"index": 0, "id": "a", "type": "function"}]}),
        delta({"tool_calls": [{"index": 1, "id": "b", "type": "function"}]}),
        call(0, name="read", arguments='{"p'),
        call(1, name="write", arguments='{"q'),
        call(0, arguments='":1}'),
        call(1, arguments='":2}'),
    )
    calls = reply["choices"][0]["message"]["tool_calls"]
    assert [(found["id"], found["function"]) for found in calls] == [
        ("a", {"name": "read", "arguments": '{"p":1}'}),
        ("b", {"name": "write", "arguments": '{"q":2}'}),
    ]


def test_arguments_that_a_server_doubled_or_cut_are_kept_as_they_came() -> None:
    for pieces in (['{"a":1}', '{"a":1}'], ['{"a"', ":1"]):
        reply = folded(
            *(delta({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": piece}}]}) for piece in pieces),
            delta({}, finish="length"),
        )
        choice = reply["choices"][0]
        assert choice["message"]["tool_calls"][0]["function"]["arguments"] == "".join(pieces)
        assert choice["finish_reason"] == "length"


def test_unknown_fields_and_logprobs_are_kept() -> None:
    reply = folded(
        {**delta({"content": "a", "mood": "go", "parts": [1]}), "x_meta": 1, "service_tier": "t"},
        {**delta({"content": "b", "mood": "od", "parts": [2], "n": 3}), "x_meta": 2, "timings": {"ms": 5}},
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [{"token": "a"}]}}]},
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [{"token": "b"}]}, "finish_reason": "stop"}]},
    )
    message = reply["choices"][0]["message"]
    assert (message["mood"], message["parts"], message["n"]) == ("good", [1, 2], 3)
    assert (reply["x_meta"], reply["service_tier"], reply["timings"]) == (2, "t", {"ms": 5})
    assert reply["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


OK = b'data: {"choices":[{"index":0,"delta":{"content":"ok"}}]}\n\n'


def test_chunks_that_hold_nothing_are_passed_over() -> None:
    fold = ChatFold()
    for text in (b'{"choices":null}', b'{"choices":[null,{"delta":null}]}', b'{"usage":null}', b"", b" "):
        fold.feed(b"data: " + text + b"\n\n")
    fold.feed(OK)
    facts = fold.facts(finished=True)
    assert (facts.preview, facts.ended, facts.error) == ("ok", False, None)


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '""',
        '{"choices":{"a":1}}',
        '{"choices":["a"]}',
        '{"choices":[{"index":"b"}]}',
        '{"choices":[{"delta":"a"}]}',
        '{"choices":[{"index":0,"message":{"content":"a"}}]}',
        '{"choices":[{"delta":{"tool_calls":"a"}}]}',
        '{"choices":[{"delta":{"tool_calls":[1]}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":"a"},{"index":0,"function":{"name":"f"}}]}}]}',
    ],
)
def test_chunks_that_cannot_be_read_leave_a_reply_that_says_so(text: str) -> None:
    fold = ChatFold()
    fold.feed(f"data: {text}\n\n".encode() + OK)
    facts = fold.facts(finished=True)
    assert (facts.preview, facts.error) == ("ok", "parts of the model server's stream could not be read")


def test_facts_can_be_asked_for_while_the_stream_goes_on() -> None:
    fold = ChatFold()
    fold.feed(b"data: " + json.dumps(delta({"content": "one "})).encode() + b"\n\n")
    assert fold.catch_up() == b"one "
    assert fold.facts().preview == "one"
    fold.feed(b"data: " + json.dumps(delta({"content": "two"})).encode() + b"\n\n")
    assert fold.catch_up() == b"two"
    assert fold.facts().preview == "one two"


def test_the_session_key_in_a_body_is_the_first_of_its_places() -> None:
    read = ChatDialect().read_request
    assert read(b'{"metadata":{"user_id":"u"},"prompt_cache_key":"p"}').session == "u"
    assert read(b'{"metadata":{"user_id":"{\\"session_id\\":\\"s\\"}"}}').session == "s"
    assert read(b'{"prompt_cache_key":"p","session_id":"x"}').session == "p"
    assert read(b'{"session_id":"x"}').session == "x"
    assert read(b'{"metadata":[],"session_id":7}').session is None


def test_the_preview_is_the_first_line_of_the_last_user_message() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "old"},
            {"role": "user", "content": [{"type": "text", "text": "\n  new \nmore"}, {"type": "image_url"}]},
            {"role": "assistant", "content": None},
            {"role": "tool", "content": "result"},
        ]
    }
    assert ChatDialect().read_request(json.dumps(body).encode()).preview == "new"


def test_a_very_large_body_has_the_same_facts_as_a_small_one() -> None:
    small = {
        "stream": True,
        "messages": [{"role": "user", "content": 'first "{[" \\'}, {"role": "user", "content": "last"}],
        "tools": [{"a": [1, {"b": "]"}]}, {}],
        "metadata": {"user_id": "u"},
        "model": "m",
    }
    large = {**small, "filler": 'x\\"é[{' * (SCAN_ABOVE // 6)}
    read = ChatDialect().read_request
    body = json.dumps(large, ensure_ascii=False).encode()
    assert len(body) > SCAN_ABOVE
    assert read(body) == read(json.dumps(small).encode())
    with pytest.raises(InvalidInput):
        read(body[:-1])
    with pytest.raises(InvalidInput):
        read(b"[" + b"1," * SCAN_ABOVE + b"1]")


def test_the_preview_of_a_very_large_last_message_is_its_own() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:" + "A" * SCAN_ABOVE}}
    for content, preview in (
        ([picture, {"type": "text", "text": "what is this?"}], "what is this?"),
        ('\n"quoted" é first\nsecond' + "x" * SCAN_ABOVE, '"quoted" é first'),
        (None, ""),
    ):
        messages = [{"role": "user", "content": "old"}, {"role": "user", "content": content}]
        body = json.dumps({"messages": messages, "pad": "x" * SCAN_ABOVE}).encode()
        assert ChatDialect().read_request(body).preview == preview


def test_a_model_goes_in_front_and_every_other_byte_stays() -> None:
    assert with_model(b' {"a":1}', "m") == b' {"model":"m","a":1}'
    assert with_model(b"{ }\n", 'q"') == b'{"model":"q\\"" }\n'


def test_what_is_parsed_while_the_stream_runs_is_told_once_and_only_when_asked_for() -> None:
    fold = ChatFold()
    for word in ("one ", "two ", "three"):
        fold.feed(b"data: " + json.dumps(delta({"content": word})).encode() + b"\n\n")
        fold.keep_up()
    assert fold.pending > 0
    assert fold.catch_up() == b"one two three"
    assert (fold.pending, fold.catch_up()) == (0, b"")
    assert json.loads(fold.facts().body or b"{}")["choices"][0]["message"]["content"] == "one two three"
