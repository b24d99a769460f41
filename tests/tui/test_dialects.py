"""Requests and replies of every wire format are shown as the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.conversation import tool_names
from reef.tui.views import conversation
from tests.fakes.daemon_fake import record_row

IMAGE = "data:image/png;base64,QUJD"
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": IMAGE}}]},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "I look."}],
        "reasoning_content": "hm",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "a"}'}}],
    },
    {"role": "tool", "tool_call_id": "t1", "content": "one.txt"},
    {"role": "user", "content": "and now?"},
]
MESSAGES: dict[str, Any] = {
    "system": "be brief",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "a"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "one.txt"}]},
        {"role": "user", "content": "and now?"},
    ],
    "tools": [{"name": "ls", "input_schema": {}}],
}
RESPONSES: dict[str, Any] = {
    "instructions": "be brief",
    "input": [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": IMAGE}],
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "t1", "name": "ls", "arguments": '{"path": "a"}'},
        {"type": "function_call_output", "call_id": "t1", "output": "one.txt"},
        {"role": "user", "content": "and now?"},
    ],
    "tools": [{"type": "function", "name": "ls"}, {"type": "web_search"}],
}


def shown(request: Any, reply: Any) -> str:
    """The text of a page from the first message on."""
    blocks = conversation.blocks(record_row(1, "x"), json.dumps(request).encode(), json.dumps(reply).encode())
    lines = [line for block in blocks[1:] for line in [block.head, *block.lines()] if line is not None]
    return "\n".join(line.text for line in lines if "offered" not in line.text)


@pytest.mark.parametrize("request_of", [MESSAGES, RESPONSES], ids=["messages", "responses"])
def test_a_request_of_another_format_is_the_same_conversation(request_of: dict[str, Any]) -> None:
    without = {name: value for name, value in request_of.items() if name != "tools"}
    assert shown(without, {}) == shown({"messages": CHAT}, {})
    assert tool_names(request_of["tools"])[0] == "ls"


def test_replies_of_every_format_are_shown_alike() -> None:
    call = {"id": "t1", "function": {"name": "ls", "arguments": "{}"}}
    chat = {"choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": [call]}}]}
    block = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
    messages = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}, block]}
    item = {"type": "function_call", "call_id": "t1", "name": "ls", "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    expected = shown({"messages": []}, chat)
    assert "hi" in expected and "ls" in expected
    assert shown({"messages": []}, messages) == expected
    assert shown({"messages": []}, {"output": [said, item]}) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        [],
        {},
        {"messages": 1},
        {"input": [1, {"type": "odd"}, {"type": 3, "role": "assistant"}]},
        {"output": [None]},
        {"content": [1]},
        {"messages": [1, {"content": [1, {"type": "x"}, {"type": "tool_use"}, {"type": "image", "source": {}}]}]},
    ],
)
def test_strange_bodies_are_shown_somehow(value: Any) -> None:
    assert isinstance(shown(value, value), str)
