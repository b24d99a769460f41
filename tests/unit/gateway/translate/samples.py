"""One rich request, whole reply and stream of each dialect: as real agents and servers send them."""

from __future__ import annotations

from typing import Any

from reef.engines.engine import CHAT, MESSAGES, RESPONSES

Json = dict[str, Any]
PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

CLAUDE_CODE: Json = {
    "model": "reef-model",
    "max_tokens": 32000,
    "stream": True,
    "temperature": 1,
    "metadata": {"user_id": '{"device_id":"d","account_uuid":"","session_id":"s"}'},
    "thinking": {"type": "adaptive", "display": "summarized"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332; cch=abcde;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be brief."},
    ],
    "tools": [
        {"name": "Read", "description": "Read a file", "input_schema": SCHEMA, "strict": True},
        {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}, "defer_loading": True},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>rules</system-reminder>"},
                {"type": "text", "text": "look at a.png", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {"role": "system", "content": "Skills: none"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look", "signature": "reef:field:reasoning_content"},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.png"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
                {
                    "type": "document",
                    "title": "a.pdf",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                },
            ],
        },
    ],
}
"""Claude Code 2.1 with a model id that it does not know."""

CODEX: Json = {
    "model": "reef-model",
    "instructions": "You are Codex.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Permissions: all"}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Skills: none"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "AGENTS.md: be brief"}]},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "fix it"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"},
            ],
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "I run it.", "annotations": []}],
        },
        {"type": "function_call", "name": "shell", "arguments": '{"cmd":["ls"]}', "call_id": "call_1"},
        {"type": "function_call", "name": "shell", "arguments": '{"cmd":["pwd"]}', "call_id": "call_2"},
        {"type": "function_call_output", "call_id": "call_2", "output": "/w"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://h/a.png"}],
        },
        {
            "type": "custom_tool_call",
            "name": "apply_patch",
            "input": "*** Begin",
            "call_id": "call_3",
            "status": "completed",
        },
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "ok"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "Run", "strict": False, "parameters": SCHEMA},
        {"type": "namespace", "name": "multi_agent_v1", "tools": [{"type": "function", "name": "spawn"}]},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "web_search", "external_web_access": False},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"x": "y"},
}
"""Codex 0.171, in the middle of a session."""

OPENCODE: Json = {
    "model": "reef-model",
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 4096,
    "temperature": 0,
    "stop": "END",
    "n": 1,
    "store": False,
    "user": "me",
    "reasoning_effort": "low",
    "parallel_tool_calls": False,
    "tool_choice": "required",
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    "tools": [
        {"type": "function", "function": {"name": "read", "description": "Read", "parameters": SCHEMA}},
        {"type": "custom", "custom": {"name": "patch"}},
    ],
    "messages": [
        {"role": "system", "content": "You are OpenCode."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
                {"type": "file", "file": {"filename": "n.txt", "file_data": "data:text/plain;base64,aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "hm",
                    "signature": "c2ln",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                }
            ],
            "tool_calls": [
                {
                    "id": "functions.read:0",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"a"}'},
                },
                {"id": "call_b", "type": "function", "function": {"name": "read", "arguments": '{"path":'}},
            ],
        },
        {"role": "tool", "tool_call_id": "functions.read:0", "content": "text of a"},
        {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "bad arguments"}]},
        {"role": "assistant", "content": "", "refusal": None},
        {"role": "user", "content": "go on"},
    ],
}
"""OpenCode with a provider of its own, and what else chat clients send."""

REQUESTS = {MESSAGES: CLAUDE_CODE, RESPONSES: CODEX, CHAT: OPENCODE}

CHAT_REPLY: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "up",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I look.",
                "reasoning_content": "hm, let me",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                    {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}
MESSAGES_REPLY: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "up",
    "content": [
        {"type": "thinking", "thinking": "hm, let me", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a"}},
        {"type": "tool_use", "id": "b", "name": "list", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 40,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    },
}
RESPONSES_REPLY: Json = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "up",
    "error": None,
    "incomplete_details": None,
    "output": [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "hm, let me"}],
            "encrypted_content": "gAAA",
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "a",
            "name": "read",
            "arguments": '{"path":"a"}',
            "status": "completed",
        },
        {
            "id": "fc_2",
            "type": "function_call",
            "call_id": "b",
            "name": "list",
            "arguments": "{}",
            "status": "completed",
        },
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    },
}
REPLIES = {CHAT: CHAT_REPLY, MESSAGES: MESSAGES_REPLY, RESPONSES: RESPONSES_REPLY}


def _chunk(part: Json, finish: str | None = None) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "up",
        "choices": [{"index": 0, "delta": part, "finish_reason": finish}],
    }


def _piece(index: int, function: Json, **head: Any) -> Json:
    return _chunk({"tool_calls": [{"index": index, **head, "function": function}]})


CHAT_STREAM: list[Json] = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"reasoning_content": "hm, "}),
    _chunk({"reasoning_content": "let me"}),
    _chunk({"content": "I "}),
    _chunk({"content": "look."}),
    _piece(0, {"name": "read", "arguments": ""}, id="a", type="function"),
    _piece(0, {"arguments": '{"path"'}),
    _piece(0, {"arguments": ':"a"}'}),
    _piece(1, {"name": "list", "arguments": ""}, id="b", type="function"),
    _piece(1, {"arguments": "{}"}),
    _chunk({}, "tool_calls"),
    {**_chunk({}), "choices": [], "usage": CHAT_REPLY["usage"]},
]


def _block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": index},
    ]


MESSAGES_STREAM: list[Json] = [
    {
        "type": "message_start",
        "message": {
            **MESSAGES_REPLY,
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 1},
        },
    },
    {"type": "ping"},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm, "},
        {"type": "thinking_delta", "thinking": "let me"},
        {"type": "signature_delta", "signature": "c2ln"},
    ),
    *_block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "I "},
        {"type": "text_delta", "text": "look."},
    ),
    *_block(
        2,
        {"type": "tool_use", "id": "a", "name": "read", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"path"'},
        {"type": "input_json_delta", "partial_json": ':"a"}'},
    ),
    *_block(3, {"type": "tool_use", "id": "b", "name": "list", "input": {}}),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}},
    },
    {"type": "message_stop"},
]


def _item(index: int, *inside: Json) -> list[Json]:
    whole = RESPONSES_REPLY["output"][index]
    empty = {
        **whole,
        **{name: "" if name == "arguments" else [] for name in ("content", "summary", "arguments") if name in whole},
    }
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        *({**one, "output_index": index, "item_id": whole["id"]} for one in inside),
        {"type": "response.output_item.done", "output_index": index, "item": whole},
    ]


RESPONSES_STREAM: list[Json] = [
    {"type": "response.created", "response": {**RESPONSES_REPLY, "status": "in_progress", "output": [], "usage": None}},
    *_item(
        0,
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "hm, "},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "let me"},
    ),
    *_item(
        1,
        {"type": "response.output_text.delta", "content_index": 0, "delta": "I ", "logprobs": []},
        {"type": "response.output_text.delta", "content_index": 0, "delta": "look.", "logprobs": []},
        {"type": "response.output_text.done", "content_index": 0, "text": "I look."},
    ),
    *_item(
        2,
        {"type": "response.function_call_arguments.delta", "delta": '{"path"'},
        {"type": "response.function_call_arguments.delta", "delta": ':"a"}'},
        {"type": "response.function_call_arguments.done", "arguments": '{"path":"a"}'},
    ),
    *_item(3),
    {"type": "response.completed", "response": RESPONSES_REPLY},
]
STREAMS = {CHAT: CHAT_STREAM, MESSAGES: MESSAGES_STREAM, RESPONSES: RESPONSES_STREAM}
