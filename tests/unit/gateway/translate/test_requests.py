"""Requests as agents send them, written for an upstream of another dialect."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import InvalidInput
from reef.gateway.translate import CannotCarry, Compat, choices
from reef.gateway.translate.hub import RAW_ARGUMENTS
from tests.unit.gateway.translate.samples import CLAUDE_CODE, CODEX, OPENCODE, PNG, SCHEMA
from tests.unit.gateway.translate.talk import asked, exchange, sent


def test_claude_code_on_a_chat_upstream() -> None:
    found = exchange(MESSAGES, CHAT, CLAUDE_CODE)
    body = found.body
    messages = body.pop("messages")
    assert body == {
        "model": "reef-model",
        "max_tokens": 32000,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 1,
        "tools": [
            {
                "type": "function",
                "function": {"name": "Read", "description": "Read a file", "parameters": SCHEMA},
            },
            {"type": "function", "function": {"name": "DeferredToolPlaceholder", "parameters": {"type": "object"}}},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    assert found.tools_left == ("web_search_20250305:web_search",)
    tools_left = "tools-left-out=web_search_20250305:web_search"
    assert found.note() == f"messages to chat; {tools_left}; fields-left-out=output_config.effort,thinking"
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert messages[0]["content"] == "You are Claude Code.\n\nBe brief."
    rules, skills = "<system-reminder>rules</system-reminder>", "<system-reminder>\nSkills: none\n</system-reminder>"
    assert messages[1]["content"] == f"{rules}\n\nlook at a.png\n\n{skills}"
    assert messages[2] == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "I should look",
        "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a.png"}'}},
            {"id": "toolu_2", "type": "function", "function": {"name": "Read", "arguments": '{"path":"b"}'}},
        ],
    }
    assert messages[4] == {"role": "tool", "tool_call_id": "toolu_2", "content": "no such file"}
    assert [part["type"] for part in messages[5]["content"]] == ["text", "image_url", "file"]
    assert messages[5]["content"][2]["file"] == {
        "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERi0=",
    }


def test_codex_on_a_chat_upstream() -> None:
    found = exchange(RESPONSES, CHAT, CODEX)
    messages = found.body["messages"]
    assert found.tools_left == ("namespace:multi_agent_v1", "custom:apply_patch", "web_search")
    assert found.fields_left == ("reasoning.effort",)
    assert [tool["function"]["name"] for tool in found.body["tools"]] == ["shell"]
    assert (found.body["verbosity"], found.body["response_format"]["json_schema"]["name"]) == ("low", "answer")
    assert "reasoning_effort" not in found.body and "store" not in found.body
    roles = ["system", "user", "assistant", "tool", "tool", "user", "assistant", "tool"]
    assert [message["role"] for message in messages] == roles
    assert messages[0]["content"] == "You are Codex.\n\nPermissions: all\n\nSkills: none"
    image = {"url": f"data:image/png;base64,{PNG}", "detail": "high"}
    assert messages[1]["content"][2] == {"type": "image_url", "image_url": image}
    assert (messages[2]["content"], messages[2]["reasoning_content"]) == ("I run it.", "hm")
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["call_1", "call_2"]
    assert [message["tool_call_id"] for message in messages[3:5]] == ["call_1", "call_2"]
    assert messages[6]["tool_calls"][0]["function"] == {
        "name": "apply_patch",
        "arguments": '{"input":"*** Begin"}',
    }


def test_opencode_on_an_anthropic_upstream() -> None:
    found = exchange(CHAT, MESSAGES, OPENCODE)
    body = found.body
    assert body["system"] == [{"type": "text", "text": "You are OpenCode."}, {"type": "text", "text": "Be brief."}]
    assert (body["max_tokens"], body["temperature"], body["stop_sequences"]) == (4096, 0, ["END"])
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert body["tools"] == [{"name": "read", "description": "Read", "input_schema": SCHEMA}]
    assert body["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert (body["thinking"], body["metadata"]) == ({"type": "adaptive"}, {"user_id": "me"})
    assert found.tools_left == ("custom:patch",)
    user, assistant, results = body["messages"]
    assert user["content"][1:] == [
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        {
            "type": "document",
            "title": "n.txt",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
        },
    ]
    thinking, first, second = assistant["content"]
    assert thinking == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert first["id"].startswith("call_") and first["id"].isascii() and ":" not in first["id"]
    assert second["input"] == {RAW_ARGUMENTS: '{"path":'}
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]
    assert [block["tool_use_id"] for block in results["content"][:2]] == [first["id"], "call_b"]


def test_claude_code_on_a_responses_upstream() -> None:
    body = sent(MESSAGES, RESPONSES, CLAUDE_CODE, Compat(effort=True))
    kinds = [item["type"] + ":" + item.get("role", "") for item in body["input"]]
    assert kinds == [
        "message:system",
        "message:user",
        "message:system",
        "message:assistant",
        "function_call:",
        "function_call:",
        "function_call_output:",
        "function_call_output:",
        "message:user",
    ]
    assert (body["store"], body["max_output_tokens"]) == (False, 32000)
    assert (body["reasoning"], body["include"]) == ({"effort": "high"}, ["reasoning.encrypted_content"])
    assert [tool["strict"] for tool in body["tools"]] == [False, False]
    assert body["input"][6]["output"][0]["image_url"] == f"data:image/png;base64,{PNG}"
    assert body["input"][-1]["content"][0]["filename"] == "a.pdf"


def test_codex_on_an_anthropic_upstream() -> None:
    request = copy.deepcopy(CODEX)
    request["text"].pop("verbosity")
    body = sent(RESPONSES, MESSAGES, request)
    assert [block["text"] for block in body["system"]] == ["You are Codex.", "Permissions: all", "Skills: none"]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
    assert body["messages"][2]["content"][0]["content"][1]["source"] == {"type": "url", "url": "https://h/a.png"}
    assert body["max_tokens"] == 32_000


def test_reasoning_that_openai_encrypted_comes_back_to_it_through_messages() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA=:x"}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    reply = exchange(MESSAGES, RESPONSES, asked(MESSAGES)).reply({"status": "completed", "output": [item, call]})
    result = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
    history = [
        *asked(MESSAGES)["messages"],
        {"role": "assistant", "content": reply["content"]},
        {"role": "user", "content": [result]},
    ]
    items = sent(MESSAGES, RESPONSES, {"messages": history})["input"]
    assert items[1] == {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA=:x"}


@pytest.mark.parametrize(
    ("client", "field", "value", "upstream"),
    [
        (RESPONSES, "previous_response_id", "resp_1", CHAT),
        (RESPONSES, "conversation", "conv_1", MESSAGES),
        (RESPONSES, "prompt", {"id": "p"}, CHAT),
        (RESPONSES, "background", True, CHAT),
        (RESPONSES, "truncation", "auto", CHAT),
        (MESSAGES, "mcp_servers", [{"url": "x"}], CHAT),
        (MESSAGES, "container", {"skills": []}, CHAT),
        (MESSAGES, "stop_sequences", ["a"], RESPONSES),
        (MESSAGES, "top_k", 5, RESPONSES),
        (CHAT, "n", 2, MESSAGES),
        (CHAT, "logprobs", True, MESSAGES),
        (CHAT, "seed", 0, RESPONSES),
        (CHAT, "logit_bias", {"1": 2}, MESSAGES),
        (CHAT, "stop", "END", RESPONSES),
        (CHAT, "frequency_penalty", 0.1, MESSAGES),
        (CHAT, "functions", [{"name": "f"}], MESSAGES),
        (CHAT, "response_format", {"type": "json_object"}, MESSAGES),
        (CHAT, "web_search_options", {}, MESSAGES),
    ],
)
def test_a_setting_that_cannot_be_carried_is_refused_by_the_name_that_the_client_used(
    client: str, field: str, value: Any, upstream: str
) -> None:
    request = asked(client, **{field: value})
    with pytest.raises(CannotCarry) as caught:
        sent(client, upstream, request)
    assert caught.value.message.startswith(f"`{field}` cannot be carried") and caught.value.http_status == 400


def test_a_stored_response_is_refused_with_what_to_do() -> None:
    with pytest.raises(CannotCarry, match="send the whole conversation in `input`"):
        sent(RESPONSES, CHAT, asked(RESPONSES, previous_response_id="resp_1"))


@pytest.mark.parametrize(
    ("client", "upstream", "fields"),
    [
        (CHAT, MESSAGES, {"n": 1, "logprobs": False, "presence_penalty": 0, "seed": None, "logit_bias": {}}),
        (CHAT, RESPONSES, {"n": 1, "stop": None, "modalities": ["text"], "top_k": None}),
        (CHAT, MESSAGES, {"store": True, "metadata": {}, "client_metadata": {}, "prompt_cache_key": "k"}),
        (
            RESPONSES,
            CHAT,
            {"store": True, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "background": False},
        ),
        (RESPONSES, CHAT, {"client_metadata": {}, "truncation": "disabled", "previous_response_id": None}),
        (MESSAGES, CHAT, {"metadata": {}, "context_management": {}, "betas": ["b"], "cache_control": {}}),
        (MESSAGES, CHAT, {"thinking": None, "output_config": {"effort": None}, "mcp_servers": []}),
        (RESPONSES, MESSAGES, {"text": {"verbosity": "medium"}, "reasoning": {"effort": None, "summary": "auto"}}),
    ],
)
def test_what_agents_always_send_and_what_asks_for_nothing_is_left_out_quietly(
    client: str, upstream: str, fields: dict[str, Any]
) -> None:
    found = exchange(client, upstream, asked(client, **fields))
    left = set(found.body) - {"model", "messages", "input", "max_tokens", "store", "metadata", "prompt_cache_key"}
    assert not left & set(fields)
    assert found.fields_left == ()


def test_a_field_that_no_table_knows_is_left_out_and_reported() -> None:
    found = exchange(CHAT, MESSAGES, asked(CHAT, chat_template_kwargs={"a": 1}, x_new="é\n"))
    assert found.fields_left == ("chat_template_kwargs", "x_new")
    assert found.note() == "chat to messages; fields-left-out=chat_template_kwargs,x_new"
    assert exchange(MESSAGES, CHAT, asked(MESSAGES, neu=1, output_config={"task": 1})).fields_left == (
        "neu",
        "output_config.task",
    )


@pytest.mark.parametrize("client", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize(
    ("hub", "messages", "responses"),
    [
        ("auto", {"type": "auto"}, "auto"),
        ("required", {"type": "any"}, "required"),
        ("none", {"type": "none"}, "none"),
        (
            {"type": "function", "function": {"name": "f"}},
            {"type": "tool", "name": "f"},
            {"type": "function", "name": "f"},
        ),
    ],
)
def test_every_choice_of_tools_has_its_counterpart(client: str, hub: Any, messages: Any, responses: Any) -> None:
    choices = {CHAT: hub, MESSAGES: messages, RESPONSES: responses}
    tools = {
        CHAT: [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        MESSAGES: [{"name": "f", "input_schema": {}}],
        RESPONSES: [{"type": "function", "name": "f", "parameters": {}}],
    }
    for upstream, wanted in choices.items():
        if upstream != client:
            body = sent(client, upstream, asked(client, tools=tools[client], tool_choice=choices[client]))
            assert body["tool_choice"] == wanted


def test_allowed_tools_are_the_only_ones_offered() -> None:
    tools = [{"type": "function", "name": name, "parameters": {}} for name in ("a", "b")]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]}
    body = sent(RESPONSES, CHAT, asked(RESPONSES, tools=tools, tool_choice=choice))
    assert ([tool["function"]["name"] for tool in body["tools"]], body["tool_choice"]) == (["b"], "required")


@pytest.mark.parametrize("choice", [{"type": "tool", "name": "web_search"}, {"type": "any"}])
def test_a_demanded_tool_that_is_left_out_is_refused(choice: dict[str, Any]) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    with pytest.raises(CannotCarry, match="tool_choice"):
        sent(MESSAGES, CHAT, asked(MESSAGES, tools=tools, tool_choice=choice))


def test_without_tools_nothing_is_said_about_them() -> None:
    body = sent(RESPONSES, CHAT, asked(RESPONSES, tool_choice="auto", parallel_tool_calls=True, tools=[]))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


def test_the_limit_has_the_name_that_the_upstream_knows() -> None:
    assert sent(MESSAGES, CHAT, asked(MESSAGES, max_tokens=5))["max_tokens"] == 5
    body = sent(RESPONSES, CHAT, asked(RESPONSES, max_output_tokens=5), Compat(max_tokens="max_completion_tokens"))
    assert body["max_completion_tokens"] == 5 and "max_tokens" not in body
    for name in ("max_tokens", "max_completion_tokens"):
        assert sent(CHAT, MESSAGES, asked(CHAT, **{name: 5}))["max_tokens"] == 5
        assert sent(CHAT, RESPONSES, asked(CHAT, **{name: 5}))["max_output_tokens"] == 5


def test_empty_content_is_no_error_and_no_empty_block() -> None:
    turns = [
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "tool", "tool_call_id": "b", "content": []},
        {"role": "assistant", "content": " \n"},
    ]
    found = sent(CHAT, MESSAGES, {"messages": turns})["messages"]
    assert [turn["role"] for turn in found] == ["user", "assistant", "user"]
    assert found[0]["content"] == [{"type": "text", "text": "hi"}]
    assert found[2]["content"] == [{"type": "tool_result", "tool_use_id": one} for one in "ab"]
    blocks = [{"type": "tool_result", "tool_use_id": "a", "is_error": True}]
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": blocks}]
    assert sent(MESSAGES, CHAT, {"messages": turns})["messages"][1]["content"] == "error"


def call(name: str) -> dict[str, Any]:
    """A call without arguments."""
    return {"id": name, "type": "function", "function": {"name": "f", "arguments": ""}}


def test_what_a_user_says_between_a_call_and_its_result_comes_after_the_result() -> None:
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "wait"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
    ]
    messages = sent(RESPONSES, CHAT, {"input": items})["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]


def test_what_stands_in_a_row_on_the_users_side_is_one_message_of_a_chat_upstream() -> None:
    said = ("user", "hi"), ("system", "be brief"), ("user", "go on")
    items = [{"role": role, "content": text} for role, text in said]
    reminded = "<system-reminder>\nbe brief\n</system-reminder>"
    for client, body in ((RESPONSES, {"input": items}), (MESSAGES, {"messages": items})):
        assert sent(client, CHAT, body)["messages"] == [{"role": "user", "content": f"hi\n\n{reminded}\n\ngo on"}]


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
def test_a_tool_that_claude_code_searched_for_is_offered_and_named_in_the_result(upstream: str) -> None:
    use = {"type": "tool_use", "id": "a", "name": "ToolSearch", "input": {"query": "select:WebFetch"}}
    found = {"type": "tool_reference", "tool_name": "WebFetch"}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [found]}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    offered = {"name": "WebFetch", "input_schema": SCHEMA, "defer_loading": True}
    body = sent(MESSAGES, upstream, {"messages": turns, "tools": [offered]})
    last = (body.get("messages") or body["input"])[-1]
    assert (last.get("content") or last["output"]) == "The tool WebFetch can be called now."
    assert [tool.get("function", tool)["name"] for tool in body["tools"]] == ["WebFetch"]


def test_a_call_id_may_come_again_in_a_later_turn() -> None:
    turn = [
        {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "done"},
    ]
    messages = sent(RESPONSES, CHAT, {"input": [*turn, *turn]})["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "assistant", "tool"]


@pytest.mark.parametrize(
    ("client", "request_", "named"),
    [
        (MESSAGES, {"messages": [{"role": "user", "content": 3}]}, r"messages\[0\]\.content"),
        (MESSAGES, {"messages": {}}, "`messages`"),
        (MESSAGES, {}, "`messages`"),
        (MESSAGES, {"messages": [{"role": "robot", "content": "x"}]}, r"messages\[0\]\.role"),
        (CHAT, {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, r"messages\[0\]\.tool_call_id"),
        (CHAT, {"messages": [{"role": "function", "name": "f", "content": "y"}]}, r"messages\[0\]\.role"),
        (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}, r"input\[0\]"),
        (RESPONSES, {"input": [{"type": "web_search_call", "id": "x"}]}, r"input\[0\]\.type"),
        (RESPONSES, {"input": 5}, "`input`"),
    ],
)
def test_a_malformed_request_is_refused_by_the_place(client: str, request_: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        sent(client, MESSAGES if client == CHAT else CHAT, request_)


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}, "input_audio"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "file_id"),
        ({"type": "file", "file": {"filename": "a.xls", "file_data": "data:x/y;base64,AA=="}}, "file"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "image_url"),
        ({"type": "video_url", "video_url": {"url": "https://h"}}, "video_url"),
    ],
)
def test_media_that_anthropic_does_not_take_are_refused(part: dict[str, Any], named: str) -> None:
    with pytest.raises(CannotCarry, match=named):
        sent(CHAT, MESSAGES, {"messages": [{"role": "user", "content": [part]}]})


def test_text_documents_keep_their_words() -> None:
    data = base64.b64encode("grüß".encode()).decode()
    file = {"type": "file", "file": {"filename": "a.txt", "file_data": f"data:text/plain;base64,{data}"}}
    document = sent(CHAT, MESSAGES, {"messages": [{"role": "user", "content": [file]}]})["messages"][0]["content"][0]
    assert document["source"]["data"] == "grüß"
    back = sent(MESSAGES, CHAT, {"messages": [{"role": "user", "content": [document]}]})["messages"][0]
    assert back["content"] == "a.txt\n\ngrüß"


def test_the_upstreams_dialect_is_the_clients_own_where_it_can_be() -> None:
    assert choices(MESSAGES, ["chat", "messages"]) == [MESSAGES, CHAT]
    assert choices(MESSAGES, ["chat", "responses"]) == [RESPONSES, CHAT]
    assert choices(RESPONSES, ("messages", "chat")) == [CHAT, MESSAGES]
    assert choices(CHAT, {"messages"}) == [MESSAGES]
    assert choices(CHAT, []) == []
