"""What is taken from bodies to be found by: everything that was said, of any dialect, and no data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.records.texts import REPEATED_CHARS, REPLY, REQUEST, TOOLS, answered, asked, words

ARGUMENTS = {"path": "src/parser.py", "type": "file", "lines": [1, 2]}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "which file"}}}
REQUESTS: dict[str, Any] = {
    "chat": {
        "model": "some-model",
        "user": "u-17",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "first question"}]},
            {
                "role": "assistant",
                "content": "let me look",
                "tool_calls": [
                    {
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "the result"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "read", "description": "reads a file", "parameters": SCHEMA}}
        ],
    },
    "messages": {
        "model": "some-model",
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "metadata": {"user_id": "u-17"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "first question"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "t1", "name": "read", "input": ARGUMENTS},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "the result"}]},
        ],
        "tools": [{"name": "read", "description": "reads a file", "input_schema": SCHEMA}],
    },
    "responses": {
        "model": "some-model",
        "instructions": "be brief",
        "prompt_cache_key": "u-17",
        "include": ["reasoning.encrypted_content"],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first question"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "let me look"}]},
            {"type": "function_call", "call_id": "t1", "name": "read", "arguments": json.dumps(ARGUMENTS)},
            {"type": "function_call_output", "call_id": "t1", "output": "the result"},
        ],
        "tools": [{"type": "function", "name": "read", "description": "reads a file", "parameters": SCHEMA}],
    },
}


@pytest.mark.parametrize("dialect", REQUESTS)
def test_a_request_of_any_dialect_gives_the_same_texts(dialect: str) -> None:
    found = asked(json.dumps(REQUESTS[dialect]).encode())
    assert sorted((text.column, text.text, text.always) for text in found) == [
        (REQUEST, "be brief", False),
        (REQUEST, "first question", False),
        (REQUEST, "read\nreads a file\nwhich file", False),
        (REQUEST, "the result", True),
        (REPLY, "let me look", False),
        (TOOLS, "read\nsrc/parser.py\nfile", False),
    ]


def test_what_was_answered_is_the_same_text_when_the_next_call_repeats_it() -> None:
    call = {"id": "t", "type": "function", "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)}}
    reply = {"role": "assistant", "content": "let me look", "refusal": None, "tool_calls": [call]}
    said = answered(json.dumps({"id": "x", "choices": [{"index": 0, "message": reply}], "usage": {}}).encode())
    assert {text.hash for text in said} <= {text.hash for text in asked(json.dumps(REQUESTS["chat"]).encode())}
    assert all(text.always for text in said)
    messages = {"type": "message", "content": REQUESTS["messages"]["messages"][1]["content"], "stop_reason": "tool_use"}
    assert {text.hash for text in answered(json.dumps(messages).encode())} == {text.hash for text in said}


def test_images_sealed_reasoning_and_other_data_are_no_texts() -> None:
    image = "data:image/png;base64," + "QUJD" * 10
    content = [
        {"type": "image_url", "image_url": {"url": image}},
        {"type": "input_image", "image_url": image},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    ]
    assert [text.text for text in asked(json.dumps({"messages": [{"role": "user", "content": content}]}).encode())] == [
        "hm"
    ]
    assert words("see " + "QUJD" * 100 + " there") == ["see", "there"]


def test_a_long_question_is_found_where_it_came_first_and_a_short_one_wherever_it_is_asked() -> None:
    long = "word " * (REPEATED_CHARS // 5 + 1)
    found = asked(json.dumps({"messages": [{"role": "user", "content": text} for text in (long, "yes")]}).encode())
    assert [text.always for text in found] == [False, True]


def test_words_are_told_apart_as_the_index_does_and_each_is_given_once() -> None:
    assert words("Parse_config(parse) it's 3.14 Straße–Größe") == [
        "parse",
        "config",
        "it",
        "s",
        "3",
        "14",
        "straße–größe",
    ]
    assert words("東京タワー") == ["東", "京", "タ", "ワ", "ー"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"no json at all", ["no json at all"]),
        (b'{"messages": [{"content": "cut o', ['{"messages": [{"content": "cut o']),
        (b'{"messages": [{"content": "nan"}], "x": NaN}', ["nan"]),
        (b'{"messages": [{"content": "\\ud800 alone"}]}', ["\ud800 alone"]),
        (b'{"messages": [{"role": 7, "content": ["a", {"b": ["c"]}]}, "d", 5, null]}', ["a", "c", "d"]),
        (b'["a list"]', ["a list"]),
        (b'{"prompt": "complete me"}', ["complete me"]),
        (b'{"contents": [{"role": "user", "parts": [{"text": "gemini"}]}]}', ["gemini"]),
        (b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}", None),
    ],
)
def test_a_body_of_any_kind_gives_what_can_be_read_of_it(body: bytes, expected: list[str] | None) -> None:
    found = [text.text for text in asked(body)]
    assert expected is None or found == expected
    for text in found:
        " ".join(words(text)).encode()
