"""What translators between dialects are known to get wrong, each with what triggers it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import InvalidInput
from reef.gateway.translate import CannotCarry, holds_minted, older_spellings, without_minted_thinking
from tests.unit.gateway.translate.talk import asked, blocks, delta, exchange, from_chat, piece, sent, told, usage

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
RESULTS: dict[str, Any] = {
    "max_tokens": 10,
    "messages": [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "see", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and now?"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "a cat"}, {"type": "image", "source": PNG}],
                },
                {"type": "tool_result", "tool_use_id": "t1", "content": "words"},
            ],
        },
    ],
}


def test_every_tool_result_stands_once_directly_after_its_calls_in_their_order() -> None:
    messages = sent(MESSAGES, CHAT, RESULTS)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [message["tool_call_id"] for message in messages[2:4]] == ["t1", "t2"]
    assert [message["content"] for message in messages[2:4]] == ["words", "a cat"]


def test_an_image_in_a_tool_result_is_carried_on_beside_what_the_user_said() -> None:
    content = sent(MESSAGES, CHAT, RESULTS)["messages"][-1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "text"]
    assert content[1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert "t2" in content[0]["text"] and content[2]["text"] == "and now?"
    items = sent(MESSAGES, RESPONSES, RESULTS)["input"]
    outputs = [item for item in items if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in outputs] == ["t1", "t2"]
    assert outputs[1]["output"][1]["image_url"] == "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("kind", ["search_result", "server_tool_use", "container_upload"])
def test_content_without_a_counterpart_is_refused_by_name(kind: str) -> None:
    request = copy.deepcopy(RESULTS)
    request["messages"][2]["content"][1]["content"][1] = {"type": kind}
    with pytest.raises(CannotCarry, match=rf"messages\[2\]\.content\[1\]\.content\[1\]\.type.*{kind}") as caught:
        sent(MESSAGES, CHAT, request)
    assert caught.value.http_status == 400


def test_a_second_result_for_one_call_is_refused() -> None:
    request = copy.deepcopy(RESULTS)
    request["messages"][2]["content"][2]["tool_use_id"] = "t2"
    with pytest.raises(InvalidInput, match="second result for the tool call 't2'"):
        sent(MESSAGES, CHAT, request)


def test_interleaved_argument_fragments_of_a_messages_stream_stay_with_their_calls() -> None:
    def start(index: int, name: str) -> dict[str, Any]:
        block = {"type": "tool_use", "id": f"t{index}", "name": name, "input": {}}
        return {"type": "content_block_start", "index": index, "content_block": block}

    def fragment(index: int, text: str) -> dict[str, Any]:
        part = {"type": "input_json_delta", "partial_json": text}
        return {"type": "content_block_delta", "index": index, "delta": part}

    events = [
        {"type": "message_start", "message": {"model": "up", "usage": {"input_tokens": 3, "output_tokens": 0}}},
        start(1, "read"),
        start(2, "write"),
        fragment(1, '{"a"'),
        fragment(2, '{"b"'),
        fragment(1, ":1}"),
        fragment(2, ":2}"),
        start(3, "list"),
        *[{"type": "content_block_stop", "index": index} for index in (1, 2, 3)],
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    calls: dict[int, dict[str, str]] = {}
    for chunk in told(CHAT, MESSAGES, events):
        for part in chunk["choices"][0]["delta"].get("tool_calls", ()) if chunk["choices"] else ():
            known = calls.setdefault(part["index"], {"id": part.get("id", ""), "arguments": ""})
            known["arguments"] += part["function"]["arguments"]
    assert calls == {
        0: {"id": "t1", "arguments": '{"a":1}'},
        1: {"id": "t2", "arguments": '{"b":2}'},
        2: {"id": "t3", "arguments": "{}"},
    }
    done = [e for e in told(RESPONSES, MESSAGES, events) if e["type"] == "response.output_item.done"]
    assert [event["item"]["arguments"] for event in done] == ['{"a":1}', '{"b":2}', "{}"]


def test_interleaved_argument_fragments_of_a_chat_stream_stay_with_their_calls() -> None:
    events = from_chat(
        MESSAGES,
        piece(0, "", "a", "read"),
        piece(1, "", "b", "write"),
        piece(0, '{"p"'),
        piece(1, '{"q"'),
        piece(2, "", "c", "list"),
        piece(0, ":1}"),
        piece(1, ":2}"),
        delta({}, "tool_calls"),
    )
    assert [(b["id"], b["name"], json.loads(b["json"])) for b in blocks(events)] == [
        ("a", "read", {"p": 1}),
        ("b", "write", {"q": 2}),
        ("c", "list", {}),
    ]


def test_reasoning_alone_is_a_thinking_block_and_not_an_empty_answer() -> None:
    chunks = [delta({"reasoning_content": "let me "}), delta({"reasoning_content": "see"}), delta({}, "length")]
    events = from_chat(MESSAGES, *chunks, usage(7, 40, reasoning=40))
    assert [(block["type"], block["thinking"]) for block in blocks(events)] == [("thinking", "let me see")]
    end = events[-2]
    assert end["delta"]["stop_reason"] == "max_tokens"
    assert (end["usage"]["input_tokens"], end["usage"]["output_tokens"]) == (7, 40)
    last = from_chat(RESPONSES, *chunks, usage(7, 40, reasoning=40))[-1]
    assert (last["type"], last["response"]["incomplete_details"]["reason"]) == (
        "response.incomplete",
        "max_output_tokens",
    )
    assert [item["type"] for item in last["response"]["output"]] == ["reasoning"]
    assert last["response"]["usage"]["output_tokens_details"]["reasoning_tokens"] == 40


def test_a_signature_that_reef_made_never_reaches_the_vendor_and_a_foreign_one_does_byte_for_byte() -> None:
    minted = blocks(from_chat(MESSAGES, delta({"reasoning": "hm"}), delta({"content": "a"}, "stop")))[0]["signature"]
    foreign = "EqoBCkgIARABGAIiQL/+=="
    request = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": minted}]},
            {"role": "user", "content": "go on"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "mine", "signature": minted},
                    {"type": "thinking", "thinking": "theirs", "signature": foreign},
                    {"type": "text", "text": "done"},
                ],
            },
        ]
    }
    assert holds_minted(json.dumps(request).encode())
    cleaned = without_minted_thinking(request)
    assert [message["role"] for message in cleaned["messages"]] == ["user", "user", "assistant"]
    assert cleaned["messages"][-1]["content"] == request["messages"][-1]["content"][1:]
    assert not holds_minted(json.dumps(cleaned).encode())
    assert without_minted_thinking(cleaned) is cleaned


def test_a_signature_comes_back_to_its_vendor_through_another_dialect() -> None:
    thinking = {"type": "thinking", "thinking": "theirs", "signature": "EqoBCkg+/="}
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    reply = {"content": [thinking, call], "model": "up", "stop_reason": "tool_use", "usage": {}}
    output = exchange(RESPONSES, MESSAGES, asked(RESPONSES)).reply(reply)["output"]
    result = {"type": "function_call_output", "call_id": "t1", "output": "x"}
    turns = sent(RESPONSES, MESSAGES, {"input": [*asked(RESPONSES)["input"], *output, result]})["messages"]
    assert turns[1]["content"] == [thinking, call]
    message = exchange(CHAT, MESSAGES, asked(CHAT)).reply(reply)["choices"][0]["message"]
    turns = sent(CHAT, MESSAGES, {"messages": [*asked(CHAT)["messages"], message]})["messages"]
    assert turns[1]["content"] == [thinking, call]


@pytest.mark.parametrize(
    ("named", "reason", "sequence"),
    [("###", "stop_sequence", "###"), (128001, "end_turn", None), (None, "end_turn", None)],
)
def test_a_matched_stop_sequence_is_named_and_a_token_id_is_none(named: Any, reason: str, sequence: str | None) -> None:
    request = asked(MESSAGES, stop_sequences=["###"], stream=True, max_tokens=9)
    end = told(MESSAGES, CHAT, [delta({"content": "a"}), delta({}, "stop", stop_reason=named)], request)[-2]
    assert end["delta"] == {"stop_reason": reason, "stop_sequence": sequence}
    choice = {"message": {"content": "a"}, "finish_reason": "stop", "stop_reason": named}
    whole = exchange(MESSAGES, CHAT, request).reply({"choices": [choice]})
    assert (whole["stop_reason"], whole["stop_sequence"]) == (reason, sequence)


GENERATION = {
    "max_tokens": 77,
    "temperature": 0,
    "top_p": 0.5,
    "stop_sequences": ["###"],
    "tools": [{"name": "w", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "w", "disable_parallel_tool_use": True},
}


def test_every_generation_setting_has_its_counterpart() -> None:
    body = sent(MESSAGES, CHAT, asked(MESSAGES, **GENERATION))
    assert (body["max_tokens"], body["temperature"], body["top_p"], body["stop"]) == (77, 0, 0.5, ["###"])
    assert body["tool_choice"] == {"type": "function", "function": {"name": "w"}}
    assert body["parallel_tool_calls"] is False
    back = sent(CHAT, MESSAGES, body)
    kept = {name: back[name] for name in GENERATION}
    assert kept == GENERATION
    codex = asked(RESPONSES, max_output_tokens=77, temperature=0, top_p=0.5, parallel_tool_calls=False)
    tools = [{"type": "function", "name": "w", "parameters": {}}]
    body = sent(RESPONSES, CHAT, {**codex, "tools": tools, "tool_choice": {"type": "function", "name": "w"}})
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (77, 0, 0.5)
    assert (body["tool_choice"]["function"]["name"], body["parallel_tool_calls"]) == ("w", False)


def test_usage_is_all_there_as_numbers_at_the_start_and_true_at_the_end() -> None:
    events = from_chat(MESSAGES, delta({"content": "a"}), delta({}, "stop"), usage(100, 20, cached=60))
    names = {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
    start = events[0]["message"]["usage"]
    assert set(start) >= names and all(type(value) is int for value in start.values())
    assert events[-2]["usage"] == {
        "input_tokens": 40,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
    }


def test_newer_openai_spellings_become_the_older_ones_where_an_upstream_needs_it() -> None:
    request = {
        "model": "m",
        "messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}],
        "max_completion_tokens": 5,
        "x_future": [1],
    }
    before = copy.deepcopy(request)
    older = older_spellings(request)
    assert older == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "x_future": [1],
    }
    assert request == before
    assert older_spellings(older) is older


def test_a_cut_tool_call_stays_cut() -> None:
    cut = '{"path":"a.txt","content":"abc'
    events = from_chat(MESSAGES, piece(0, cut, "a", "write"), delta({}, "length"))
    assert (blocks(events)[0]["json"], events[-2]["delta"]["stop_reason"]) == (cut, "max_tokens")
    last = from_chat(RESPONSES, piece(0, cut, "a", "write"), delta({}, "length"))[-1]
    assert last["type"] == "response.incomplete"
    assert (last["response"]["output"][0]["arguments"], last["response"]["output"][0]["status"]) == (cut, "incomplete")
    raised = from_chat(MESSAGES, piece(0, '{"a":1}', "a", "write"), delta({}, "stop"))
    assert raised[-2]["delta"]["stop_reason"] == "tool_use"


def test_stop_is_raised_to_a_tool_call_only_when_every_call_is_whole() -> None:
    good, bad = piece(0, '{"a":1}', "a", "write"), piece(1, '{"path":"a.txt","cont', "b", "write")
    for calls, reason, finish in (((good,), "tool_use", "tool_calls"), ((good, bad), "end_turn", "stop")):
        assert from_chat(MESSAGES, *calls, delta({}, "stop"))[-2]["delta"]["stop_reason"] == reason
        upstream = [event for event in from_chat(MESSAGES, *calls, delta({}, "stop")) if event["type"] != "ping"]
        upstream[-2]["delta"]["stop_reason"] = "end_turn"
        assert told(CHAT, MESSAGES, upstream)[-1]["choices"][0]["finish_reason"] == finish
        items = from_chat(RESPONSES, *calls, delta({}, "stop"))[-1]["response"]["output"]
        assert [item["status"] for item in items] == ["completed", "incomplete"][: len(calls)]
    named = from_chat(MESSAGES, bad, delta({}, "tool_calls"))
    assert named[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("place", ["item", "completed"])
def test_arguments_that_come_only_with_a_closing_event_are_told_once(place: str) -> None:
    empty = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "glob", "arguments": ""}
    whole = {**empty, "arguments": '{"pattern":"*.py"}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": whole}
    last = {"status": "completed", "output": [whole], "usage": {"input_tokens": 1, "output_tokens": 2}}
    events = [
        {"type": "response.created", "response": {"model": "up"}},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *([done] if place == "item" else []),
        {"type": "response.completed", "response": last},
    ]
    found = blocks(told(MESSAGES, RESPONSES, events))
    assert [(block["id"], block["json"]) for block in found] == [("c1", '{"pattern":"*.py"}')]
