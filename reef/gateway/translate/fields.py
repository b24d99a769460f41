"""Which top-level field of one dialect becomes which of another: the tables, as data.

A request goes through one common form, the *hub*: an OpenAI chat request with the few additions that `hub.py` names. A
client's request is read into the hub by the `…_IN` table of its dialect, and written for the upstream by an `…_OUT`
table. Every known field stands in exactly one of five places:

- `plain`: carried under another name (or the same), value untouched.
- `shaped`: carried, but its value has another form there; the text says which.
- `ignored`: left out because it means nothing to the other side; agents always send these, and a 400 for them would
  only make the agent send the whole request again.
- `named`: left out too, but it asks for a manner of answering, so its name is reported unless its value asks for
  nothing.
- `refused`: cannot be carried and would change the answer, so the call is refused with a 400 that names the field,
  unless its value is null or one that asks for nothing.

A field that stands nowhere (a new one, or an extension of one server) is left out too, but its name is reported with
the tools that were left out, so that nothing goes missing unseen. The content of a conversation has no such freedom:
a content part, item or role that is not known is always refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.gateway.translate.hub import CannotCarry, Json


@dataclass(frozen=True, slots=True)
class Limit:
    """Why a field cannot be carried, and the values that ask for nothing and so may be left out."""

    why: str
    neutral: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """One table: see the module's docstring."""

    plain: Mapping[str, str]
    shaped: Mapping[str, str]
    ignored: Mapping[str, str]
    refused: Mapping[str, Limit]
    named: Mapping[str, Limit] = field(default_factory=dict)

    def carry(self, body: Json) -> tuple[Json, list[str]]:
        """The plain fields of `body` under their new names, and the names of those left out.

        What is ignored is not named. A null is like an absent field. Raises CannotCarry for a refused field with a
        value that asks for something.
        """
        found: Json = {}
        left: list[str] = []
        for name, value in body.items():
            if value is None:
                continue
            if name in self.plain:
                found[self.plain[name]] = value
            elif name in self.refused:
                limit = self.refused[name]
                if value not in limit.neutral:
                    raise CannotCarry(name, limit.why)
            elif name in self.named:
                left += [name] if value not in self.named[name].neutral else []
            elif name not in self.shaped and name not in self.ignored:
                left.append(name)
        return found, left


MESSAGES_IN = Fields(
    plain={
        "model": "model",
        "stream": "stream",
        "max_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop_sequences": "stop",
    },
    shaped={
        "system": "system messages at the front",
        "messages": "messages; one tool message for each tool_result, reasoning beside the text",
        "tools": "function tools; all others are left out and reported",
        "tool_choice": "tool_choice; disable_parallel_tool_use becomes parallel_tool_calls: false",
        "thinking": "reasoning_effort by its budget, where output_config names no effort; see effort.py",
        "output_config": "effort becomes reasoning_effort, format becomes response_format; see effort.py",
        "output_format": "response_format (the older place of output_config.format)",
    },
    ignored={
        "metadata": "names the person's account and session to the vendor",
        "context_management": "asks the vendor to edit the history; the whole history is sent instead",
        "cache_control": "other servers find repeated prefixes by themselves (on blocks and tools too)",
        "betas": "names of the vendor's own trials",
        "anthropic_beta": "the same in the body",
        "anthropic_version": "the vendor's own protocol version",
        "service_tier": "a tier of the person's account at the vendor",
        "speed": "a tier of the person's account at the vendor",
        "inference_geo": "a place of the vendor's",
        "diagnostics": "asks for the vendor's own cache report",
        "user_profile_id": "an account of the vendor's",
        "workspace_id": "an account of the vendor's",
    },
    refused={
        "container": Limit("only the vendor's own servers run containers and hosted skills"),
        "mcp_servers": Limit("only the vendor's own servers call MCP servers", ([],)),
    },
)
"""Anthropic messages to the hub."""

RESPONSES_IN = Fields(
    plain={
        "model": "model",
        "stream": "stream",
        "max_output_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "parallel_tool_calls": "parallel_tool_calls",
        "user": "user",
    },
    shaped={
        "input": "messages; consecutive items of the assistant become one message",
        "instructions": "the first system message",
        "tools": "function tools; all others are left out and reported",
        "tool_choice": "tool_choice",
        "text": "format becomes response_format, verbosity stays",
        "reasoning": "effort becomes reasoning_effort; a summary is always given",
        "include": "sealed reasoning is always given; whatever else it asks for is named as left out",
    },
    ignored={
        "store": "nothing is stored behind this upstream; the reply says store: false",
        "metadata": "labels of a stored response",
        "client_metadata": "the client's own labels",
        "prompt_cache_key": "the vendor's own cache",
        "prompt_cache_options": "the vendor's own cache",
        "prompt_cache_retention": "the vendor's own cache",
        "context_management": "asks the vendor to shorten the history; the whole history is sent instead",
        "safety_identifier": "names the person to the vendor",
        "service_tier": "a tier of the person's account at the vendor",
        "access_programs": "programmes of the person's account at the vendor",
        "session_id": "names the session to a gateway",
        "stream_options": "padding of the vendor's streams",
        "background_options": "of `background`, which is refused",
        "max_tool_calls": "limits built-in tools, and none of those is carried",
        "image": "the vendor's own image handling",
    },
    refused={
        "previous_response_id": Limit(
            "it needs stored responses, and this upstream stores none; send the whole conversation in `input`"
        ),
        "conversation": Limit(
            "it needs stored conversations, and this upstream stores none; send the whole conversation in `input`"
        ),
        "prompt": Limit("it names a prompt stored at the vendor"),
        "background": Limit("there is nothing behind this upstream that would answer later", (False,)),
        "truncation": Limit("only the vendor's own servers shorten a conversation", ("disabled",)),
        "top_logprobs": Limit("token probabilities have another form there", (0,)),
        "moderation": Limit("only the vendor's own servers moderate"),
    },
)
"""OpenAI responses to the hub."""

_NOT_IN_ANTHROPIC = "Anthropic messages have no such setting"
_NOT_IN_RESPONSES = "OpenAI responses have no such setting"
_OLD_FUNCTIONS = "it is the old form of `tools`; send `tools` and `tool_choice`"

_CHAT_ONLY: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "seed": (),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "moderation": (),
}
"""Settings of chat completions (and of servers that speak it) that the other two lack, with what asks for nothing."""

MESSAGES_OUT = Fields(
    plain={
        "model": "model",
        "stream": "stream",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
    },
    shaped={
        "messages": "system and messages; tool messages become tool_result blocks of one user turn",
        "max_tokens": "max_tokens; DEFAULT_MAX_TOKENS where the client names none, because it is required there",
        "max_completion_tokens": "max_tokens",
        "stop": "stop_sequences, always a list",
        "tools": "tools",
        "tool_choice": "tool_choice",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use, reversed",
        "response_format": "output_config.format for a JSON schema; a bare json_object is refused",
        "reasoning_effort": "thinking: adaptive and output_config.effort; none and minimal become thinking: disabled",
        "user": "metadata.user_id",
    },
    ignored={
        "store": "nothing is stored",
        "metadata": "labels of a stored completion",
        "client_metadata": "the client's own labels",
        "session_id": "names the session to a gateway",
        "prompt_cache_key": "another vendor's cache",
        "prompt_cache_options": "another vendor's cache",
        "prompt_cache_retention": "another vendor's cache",
        "safety_identifier": "names the person to another vendor",
        "service_tier": "a tier of an account at another vendor",
        "stream_options": "whether the client wants usage at the end; read when the reply is written",
    },
    refused={
        **{name: Limit(_NOT_IN_ANTHROPIC, neutral) for name, neutral in _CHAT_ONLY.items()},
        "functions": Limit(_OLD_FUNCTIONS, ([],)),
        "function_call": Limit(_OLD_FUNCTIONS, ("none", "auto")),
    },
    named={"verbosity": Limit(_NOT_IN_ANTHROPIC, ("medium",))},
)
"""The hub to Anthropic messages."""

RESPONSES_OUT = Fields(
    plain={
        "model": "model",
        "stream": "stream",
        "temperature": "temperature",
        "top_p": "top_p",
        "user": "user",
        "metadata": "metadata",
        "prompt_cache_key": "prompt_cache_key",
        "prompt_cache_options": "prompt_cache_options",
        "prompt_cache_retention": "prompt_cache_retention",
        "safety_identifier": "safety_identifier",
        "service_tier": "service_tier",
    },
    shaped={
        "messages": "input items; a tool call and its result are items of their own",
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "tools": "tools; strict is always said, because it is on by default there and off in the hub",
        "tool_choice": "tool_choice",
        "parallel_tool_calls": "parallel_tool_calls, where there are tools",
        "response_format": "text.format",
        "verbosity": "text.verbosity",
        "reasoning_effort": "reasoning.effort, and include: reasoning.encrypted_content so that it can be sent back",
        "store": "store; false where the client does not say, because it is on by default there",
    },
    ignored={
        "client_metadata": "the client's own labels",
        "session_id": "names the session to a gateway",
        "stream_options": "whether the client wants usage at the end; read when the reply is written",
    },
    refused={
        **{name: Limit(_NOT_IN_RESPONSES, neutral) for name, neutral in _CHAT_ONLY.items()},
        "stop": Limit(_NOT_IN_RESPONSES, ([], "")),
        "top_k": Limit(_NOT_IN_RESPONSES),
        "functions": Limit(_OLD_FUNCTIONS, ([],)),
        "function_call": Limit(_OLD_FUNCTIONS, ("none", "auto")),
    },
)
"""The hub to OpenAI responses."""

CHAT_OUT = Fields(
    plain={
        "model": "model",
        "stream": "stream",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop": "stop",
        "user": "user",
        "verbosity": "verbosity",
        "response_format": "response_format",
        "reasoning_effort": "reasoning_effort",
    },
    shaped={
        "messages": "messages as the plainest server takes them, see request_to_chat.py",
        "max_tokens": "max_tokens, or max_completion_tokens where the upstream's compat setting says so",
        "tools": "tools",
        "tool_choice": "tool_choice, where there are tools; allowed_tools becomes a shorter list of tools",
        "parallel_tool_calls": "parallel_tool_calls, where there are tools",
    },
    ignored={},
    refused={},
)
"""The hub, as read from one of the other two dialects, to chat completions. Nothing else gets into that hub."""

CLIENT_NAMES: Mapping[str, Mapping[str, str]] = {
    MESSAGES: {
        "stop": "stop_sequences",
        "response_format": "output_config.format",
        "reasoning_effort": "output_config.effort",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    },
    RESPONSES: {
        "max_tokens": "max_output_tokens",
        "messages": "input",
        "response_format": "text.format",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
    },
    CHAT: {},
}
"""What a client calls a field of the hub, so that a refusal names what the client sent."""

IGNORED_IN_CONTENT: Mapping[str, str] = {
    "cache_control": "see MESSAGES_IN; a chat client's is carried to Anthropic",
    "citations": "where the vendor's search found a text; the text itself is carried",
    "annotations": "the same in OpenAI's words",
    "logprobs": "token probabilities of an earlier answer",
    "is_error": "no other dialect marks a failed tool; its text says so, and an empty one becomes the word error",
    "status": "whether an item was finished; history always is",
    "id": "the name of an item at the vendor; results are matched by call_id",
    "phase": "a label of the vendor's own models",
    "name": "the name of a person in a chat message, of the tool in a tool message",
    "caller": "which hosted program made a call",
    "namespace": "a group of tools at the vendor",
    "detail": "how closely an image is looked at; carried between the two OpenAI dialects",
    "prompt_cache_breakpoint": "the vendor's own cache",
    "redacted_thinking": "readable only by the vendor that wrote it; carried back to it, left out elsewhere",
    "encrypted_content": "the same in OpenAI's words",
    "x-anthropic-billing-header": "a system block that is no prompt; it changes often and spoils a prefix cache",
    "strict": "of a messages tool: Anthropic's allows schemas that OpenAI's refuses; carried in all other directions",
    "defer_loading": "the vendor's own tool search; the tool is simply offered",
}
"""Fields inside messages, blocks, items and tools that mean nothing to the other side."""
