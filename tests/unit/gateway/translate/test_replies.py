"""Replies and streams: odd servers, errors, and ends that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import UpstreamFailed
from reef.gateway.translate import error_reply
from tests.unit.gateway.translate.samples import REPLIES, STREAMS
from tests.unit.gateway.translate.talk import RECEIPT, asked, blocks, delta, exchange, from_chat, piece, told, usage

DIALECTS = (CHAT, MESSAGES, RESPONSES)
PAIRS = [(client, upstream) for client in DIALECTS for upstream in DIALECTS if client != upstream]
FAILURES: dict[str, dict[str, Any]] = {
    CHAT: {"error": {"message": "quota exceeded", "type": "rate_limit_error"}},
    MESSAGES: {"type": "error", "error": {"type": "overloaded_error", "message": "quota exceeded"}},
    RESPONSES: {"type": "error", "code": "rate_limit_exceeded", "message": "quota exceeded", "param": None},
}


def test_a_responses_stream_is_a_legal_sequence() -> None:
    events = told(RESPONSES, CHAT, STREAMS[CHAT])
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:2] == ["created", "in_progress"] and kinds[-1] == "completed"
    added = [event for event in events if event["type"].endswith("output_item.added")]
    done = [event for event in events if event["type"].endswith("output_item.done")]
    assert [event["output_index"] for event in added] == [event["output_index"] for event in done] == [0, 1, 2, 3]
    assert [event["item"]["id"] for event in added] == [event["item"]["id"] for event in done]
    assert events[-1]["response"]["output"] == [event["item"] for event in done]
    text = kinds.index("content_part.added")
    assert kinds[text : text + 6] == [
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert {event["response"]["id"] for event in events if "response" in event} == {f"resp_{RECEIPT}"}


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_an_error_in_the_middle_of_a_stream_is_told_and_nothing_follows(client: str, upstream: str) -> None:
    middle = STREAMS[upstream][:4]
    stream = exchange(client, upstream, asked(client, stream=True)).stream()
    for event in middle:
        stream.take(event)
    events = stream.take(FAILURES[upstream])
    assert "quota exceeded" in json.dumps(events)
    assert events[-1].get("type") == {CHAT: None, MESSAGES: "error", RESPONSES: "response.failed"}[client]
    assert stream.failure is not None and stream.failure.message == "quota exceeded"
    assert stream.failure.status in (429, 529)
    assert [stream.take(event) for event in STREAMS[upstream]] == [[]] * len(STREAMS[upstream])
    assert stream.done() == [] and not stream.ended


@pytest.mark.parametrize("upstream", DIALECTS)
def test_an_error_as_the_first_event_is_told_to_a_responses_client_after_a_beginning(upstream: str) -> None:
    if upstream == RESPONSES:
        events = told(MESSAGES, upstream, [FAILURES[upstream]])
        assert [event["type"] for event in events] == ["error"]
        return
    events = told(RESPONSES, upstream, [FAILURES[upstream]])
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", "response.failed"]
    assert events[-1]["response"]["error"]["message"] == "quota exceeded"
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_stream_that_only_stops_is_never_told_as_ended(client: str, upstream: str) -> None:
    last = {CHAT: -2, MESSAGES: -2, RESPONSES: -1}[upstream]
    stream = exchange(client, upstream, asked(client, stream=True)).stream()
    events = [told for event in STREAMS[upstream][:last] for told in stream.take(event)]
    events += stream.done()
    assert events and not stream.ended and stream.failure is None
    ends = ("message_stop", "response.completed", '"finish_reason": "')
    assert not any(end in json.dumps(event) for event in events for end in ends)


def test_a_chat_stream_that_named_its_reason_is_whole_without_the_mark() -> None:
    stream = exchange(MESSAGES, CHAT, asked(MESSAGES)).stream()
    stream.take(delta({"content": "a"}))
    stream.take(delta({}, "stop"))
    assert [event["type"] for event in stream.done()][-1] == "message_stop"
    assert stream.ended and stream.done() == []


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_an_error_in_place_of_a_whole_reply_is_the_upstreams_failure(client: str, upstream: str) -> None:
    failed = {"status": "failed", "error": {"code": "server_error", "message": "quota exceeded"}}
    body = failed if upstream == RESPONSES else FAILURES[upstream]
    with pytest.raises(UpstreamFailed, match="quota exceeded"):
        exchange(client, upstream, asked(client)).reply(body)
    with pytest.raises(UpstreamFailed, match="holds no answer"):
        exchange(client, upstream, asked(client)).reply({"hello": 1})


@pytest.mark.parametrize("chunk", ["both", "split"])
def test_calls_that_all_have_the_index_0_are_told_apart_by_their_ids(chunk: str) -> None:
    chunks = [piece(0, '{"a":1}', "x", "read"), piece(0, '{"b":2}', "y", "write")]
    if chunk == "split":
        chunks = [piece(0, "", "x", "read"), piece(0, '{"a":1}'), piece(0, "", "y", "write"), piece(0, '{"b":2}')]
    found = blocks(from_chat(MESSAGES, *chunks, delta({}, "tool_calls")))
    assert [(block["id"], block["json"]) for block in found] == [("x", '{"a":1}'), ("y", '{"b":2}')]


def test_calls_without_ids_or_with_one_id_get_ids_of_their_own() -> None:
    found = blocks(from_chat(MESSAGES, piece(0, "{}", "", "read"), piece(1, "{}", "", "write"), delta({}, "stop")))
    assert [block["name"] for block in found] == ["read", "write"]
    assert len({block["id"] for block in found}) == 2 and all(block["id"] for block in found)
    calls = [{"id": "same", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    reply = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    output = exchange(RESPONSES, CHAT, asked(RESPONSES)).reply(reply)["output"]
    assert [item["name"] for item in output] == ["a", "b"] and output[0]["call_id"] != output[1]["call_id"]


def test_a_name_repeated_with_every_piece_is_one_name() -> None:
    chunks = [piece(0, '{"a"', "x", "read"), piece(0, ":1}", "x", "read"), delta({}, "tool_calls")]
    found = blocks(from_chat(MESSAGES, *chunks))
    assert [(block["name"], block["json"]) for block in found] == [("read", '{"a":1}')]


def test_reasoning_in_two_fields_is_told_once() -> None:
    chunks = [delta({"reasoning": text, "reasoning_content": text}) for text in ("a", "b")]
    found = blocks(from_chat(MESSAGES, *chunks, delta({"content": "c"}, "stop")))
    assert [block.get("thinking", block.get("text")) for block in found] == ["ab", "c"]


def test_reasoning_goes_back_in_the_field_that_it_came_in() -> None:
    for field in ("reasoning", "reasoning_content"):
        reply = {"choices": [{"message": {field: "hm", "content": "a"}, "finish_reason": "stop"}]}
        content = exchange(MESSAGES, CHAT, asked(MESSAGES)).reply(reply)["content"]
        turns = [*asked(MESSAGES)["messages"], {"role": "assistant", "content": content}]
        assert exchange(MESSAGES, CHAT, {"messages": turns}).body["messages"][1][field] == "hm"
        output = exchange(RESPONSES, CHAT, asked(RESPONSES)).reply(reply)["output"]
        items = [*asked(RESPONSES)["input"], *output]
        assert exchange(RESPONSES, CHAT, {"input": items}).body["messages"][1][field] == "hm"


def test_text_between_calls_keeps_its_place() -> None:
    events = from_chat(
        MESSAGES,
        delta({"content": "first"}),
        piece(0, "{}", "a", "read"),
        delta({"content": "then"}),
        piece(1, "{}", "b", "read"),
        delta({}, "tool_calls"),
    )
    assert [block["type"] for block in blocks(events)] == ["text", "tool_use", "text", "tool_use"]


def test_a_call_is_told_while_it_comes_even_when_another_is_mixed_in() -> None:
    stream = exchange(MESSAGES, CHAT, asked(MESSAGES)).stream()
    stream.take(piece(0, '{"a"', "x", "read"))
    assert stream.take(piece(1, '{"b"', "y", "write")) == []
    assert [event["type"] for event in stream.take(piece(0, ":1}"))] == [
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]
    assert stream.take(piece(1, ":2}"))[0]["delta"]["partial_json"] == ":2}"


def test_a_refusal_is_one_in_every_dialect() -> None:
    chunks = [delta({"refusal": "I "}), delta({"refusal": "won't"}), delta({}, "content_filter")]
    events = from_chat(MESSAGES, *chunks)
    assert (blocks(events)[0]["text"], events[-2]["delta"]["stop_reason"]) == ("I won't", "refusal")
    last = from_chat(RESPONSES, *chunks)[-1]["response"]
    assert last["output"][0]["content"] == [{"type": "refusal", "refusal": "I won't"}]
    assert last["incomplete_details"] == {"reason": "content_filter"}
    message = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    reply = exchange(CHAT, RESPONSES, asked(CHAT)).reply({"status": "completed", "output": [message]})
    assert reply["choices"][0]["message"]["refusal"] == "no"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
        ("pause_turn", "stop"),
        (None, "stop"),
    ],
)
def test_every_reason_of_an_anthropic_end_has_its_word(reason: str | None, finish: str) -> None:
    reply = {"content": [{"type": "text", "text": "a"}], "stop_reason": reason, "stop_sequence": "#", "usage": {}}
    choice = exchange(CHAT, MESSAGES, asked(CHAT)).reply(reply)["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == (finish, "#")


def test_usage_is_sent_to_a_chat_client_only_when_it_asked() -> None:
    quiet = told(CHAT, MESSAGES, STREAMS[MESSAGES], asked(CHAT, stream=True))
    assert all(chunk["choices"] and "usage" not in chunk for chunk in quiet)
    request = asked(CHAT, stream=True, stream_options={"include_usage": True})
    last = told(CHAT, MESSAGES, STREAMS[MESSAGES], request)[-1]
    assert (last["choices"], last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == ([], 100, 20)


def test_a_reply_without_usage_has_none_invented_where_it_may_lack() -> None:
    reply = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
    assert exchange(RESPONSES, CHAT, asked(RESPONSES)).reply(reply)["usage"] is None
    zeros = exchange(MESSAGES, CHAT, asked(MESSAGES)).reply(reply)["usage"]
    assert set(zeros.values()) == {0}


def test_a_response_says_its_request_again() -> None:
    request = asked(RESPONSES, instructions="be brief", temperature=0, tools=[{"type": "web_search"}], store=True)
    reply = exchange(RESPONSES, CHAT, request).reply(REPLIES[CHAT])
    assert (reply["instructions"], reply["temperature"], reply["tools"]) == ("be brief", 0, [{"type": "web_search"}])
    assert (reply["store"], reply["tool_choice"], reply["id"]) == (False, "auto", f"resp_{RECEIPT}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 529])
def test_an_error_reply_has_the_clients_shape_and_word(status: int) -> None:
    words = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    openai = json.dumps({"error": {"message": "no such thing", "type": "x", "param": "p", "code": "c"}}).encode()
    found = error_reply(MESSAGES, status, openai)
    assert found == {"type": "error", "error": {"type": found["error"]["type"], "message": "no such thing"}}
    assert found["error"]["type"] == words.get(status, found["error"]["type"])
    anthropic = json.dumps({"type": "error", "error": {"type": "y", "message": "no such thing"}}).encode()
    found = error_reply(CHAT, status, anthropic)
    assert set(found["error"]) == {"message", "type", "param", "code"}
    assert found["error"]["message"] == "no such thing"
    assert error_reply(RESPONSES, status, openai)["error"]["param"] == "p"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>bad gateway</html>", "<html>bad gateway</html>"),
        (b"", "the model server reports an error and says no more"),
        (b'{"detail":"not here"}', "not here"),
        (b'{"error":"plain words"}', "plain words"),
    ],
)
def test_an_error_of_no_known_shape_keeps_its_words(body: bytes, message: str) -> None:
    assert error_reply(MESSAGES, 502, body)["error"]["message"] == message


def test_a_summary_and_the_full_reasoning_are_not_both_told() -> None:
    item = {
        "id": "rs",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "s1"}, {"type": "summary_text", "text": "s2"}],
        "content": [{"type": "reasoning_text", "text": "all of it"}],
    }
    reply = exchange(MESSAGES, RESPONSES, asked(MESSAGES)).reply({"status": "completed", "output": [item]})
    assert [block["thinking"] for block in reply["content"]] == ["s1\n\ns2"]


def test_deltas_and_the_whole_text_together_are_one_text() -> None:
    events = told(MESSAGES, RESPONSES, STREAMS[RESPONSES])
    assert [block.get("text") for block in blocks(events) if block["type"] == "text"] == ["I look."]
    only_last = [STREAMS[RESPONSES][0], STREAMS[RESPONSES][-1]]
    again = told(MESSAGES, RESPONSES, only_last)
    assert [block.get("text") for block in blocks(again) if block["type"] == "text"] == ["I look."]
    assert [block["json"] for block in blocks(again) if block["type"] == "tool_use"] == ['{"path":"a"}', "{}"]


def test_a_bare_stream_of_usage_is_an_empty_answer() -> None:
    events = from_chat(MESSAGES, delta({"role": "assistant", "content": ""}), delta({}, "stop"), usage(3, 0))
    assert [event["type"] for event in events] == ["message_start", "message_delta", "message_stop"]


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
def test_what_a_server_calls_its_own_tools_with_is_no_call_of_the_clients(client: str) -> None:
    start = {"type": "content_block_start", "index": 0}
    own = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    events = [
        STREAMS[MESSAGES][0],
        {**start, "content_block": own},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {**start, "index": 1, "content_block": found},
        {"type": "content_block_stop", "index": 1},
        {**start, "index": 2, "content_block": {"type": "text", "text": "found"}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    said = json.dumps(told(client, MESSAGES, events))
    assert "found" in said and '"tool_calls"' not in said and "function_call" not in said
    assert ('"finish_reason": "stop"' if client == CHAT else "response.completed") in said


@pytest.mark.parametrize("lost", [b'{"choices":[{"index":0,"delta":{"content":"lo', b"ping", b"[1]", b"null"])
@pytest.mark.parametrize("client", [MESSAGES, RESPONSES])
def test_a_stream_of_which_a_part_cannot_be_read_is_an_error_and_never_a_whole_reply(client: str, lost: bytes) -> None:
    first, *rest = (b"data: " + json.dumps(event).encode() + b"\n\n" for event in STREAMS[CHAT])
    bridge = exchange(client, CHAT, asked(client, stream=True)).bridge()
    said = b"".join(map(bridge.feed, (first, b"data: " + lost + b"\n\n", *rest, b"data: [DONE]\n\n"))) + bridge.finish()
    assert b"could not be read" in said and bridge.failure is not None and not bridge.ended
    assert b"message_stop" not in said and b"response.completed" not in said


@pytest.mark.parametrize("empty", [b"data:\n\n", b": ping\n\n", b"event: ping\n\n"])
def test_an_event_of_no_content_is_nothing_lost(empty: bytes) -> None:
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in STREAMS[CHAT]]
    bridge = exchange(MESSAGES, CHAT, asked(MESSAGES, stream=True)).bridge()
    said = b"".join(bridge.feed(empty + event) for event in events) + bridge.finish()
    assert b"message_stop" in said and bridge.ended


def test_half_an_event_at_the_close_is_a_cut_stream_and_no_unreadable_one() -> None:
    bridge = exchange(MESSAGES, CHAT, asked(MESSAGES, stream=True)).bridge()
    bridge.feed(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: {"choices":[{"ind')
    assert bridge.finish() == b"" and not bridge.over


@pytest.mark.parametrize("names", [{}, {"id": ""}, {"id": "same"}], ids=["no id", "an empty id", "one id for all"])
@pytest.mark.parametrize("streaming", [False, True])
def test_items_of_a_response_that_their_names_do_not_tell_apart_are_all_told(
    names: dict[str, str], streaming: bool
) -> None:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "thought"}], **names},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "said"}], **names},
        {"type": "function_call", "name": "f", "arguments": '{"a":1}', **names},
    ]
    whole = {"status": "completed", "output": items, "usage": {"input_tokens": 1, "output_tokens": 1}}
    if streaming:
        done = [
            {"type": "response.output_item.done", "output_index": index, "item": item}
            for index, item in enumerate(items)
        ]
        events = told(MESSAGES, RESPONSES, [*done, {"type": "response.completed", "response": whole}])
        found = [block["type"] for block in blocks(events)]
        said = json.dumps(events)
    else:
        reply = exchange(MESSAGES, RESPONSES, asked(MESSAGES)).reply(whole)
        found = [block["type"] for block in reply["content"]]
        said = json.dumps(reply)
    assert found == ["thinking", "text", "tool_use"]
    assert said.count("thought") == said.count("said") == 1
