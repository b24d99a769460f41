"""Calls that programs make with the official SDKs, and the objects that they get, as plain values to compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai

Json = dict[str, Any]
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
DESCRIPTION = "Reads a file."
CHAT_TOOLS: Any = [
    {"type": "function", "function": {"name": "read", "description": DESCRIPTION, "parameters": PARAMETERS}}
]
RESPONSES_TOOLS: Any = [
    {"type": "function", "name": "read", "description": DESCRIPTION, "parameters": PARAMETERS, "strict": False}
]
MESSAGES_TOOLS: Any = [{"name": "read", "description": DESCRIPTION, "input_schema": PARAMETERS}]
USAGE: Any = {"include_usage": True}


class Clients:
    """Both SDKs, pointed at one address, with its key."""

    def __init__(self, url: str, key: str = "unused") -> None:
        self.url = url
        self.openai = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)

    def close(self) -> None:
        """Close the connections."""
        self.openai.close()
        self.anthropic.close()


def said(words: str) -> Any:
    """A conversation of one message of the user."""
    return [{"role": "user", "content": words}]


def chat(at: Clients, words: str, **more: Any) -> Any:
    """A chat completion."""
    return at.openai.chat.completions.create(model="m", messages=said(words), **more)


def chat_stream(at: Clients, words: str, **more: Any) -> list[Any]:
    """A chat completion, chunk by chunk."""
    return list(at.openai.chat.completions.create(model="m", messages=said(words), stream=True, **more))


def chat_helper(at: Clients, words: str, **more: Any) -> list[Any]:
    """What the SDK's own stream helper makes of a chat completion: its last object."""
    with at.openai.chat.completions.stream(model="m", messages=said(words), **more) as events:
        return [events.get_final_completion()]


def response(at: Clients, words: str, **more: Any) -> Any:
    """A response."""
    return at.openai.responses.create(model="m", input=said(words), **more)


def response_stream(at: Clients, words: str, **more: Any) -> list[Any]:
    """A response, event by event."""
    return list(at.openai.responses.create(model="m", input=said(words), stream=True, **more))


def response_helper(at: Clients, words: str, **more: Any) -> list[Any]:
    """What the SDK's own stream helper makes of a response: its events, and its last object."""
    with at.openai.responses.stream(model="m", input=said(words), **more) as events:
        return [*events, events.get_final_response()]


def message(at: Clients, words: str, **more: Any) -> Any:
    """A message."""
    return at.anthropic.messages.create(**{"model": "m", "max_tokens": 100, "messages": said(words), **more})


def message_stream(at: Clients, words: str, **more: Any) -> list[Any]:
    """A message, event by event."""
    asked = {"model": "m", "max_tokens": 100, "messages": said(words), **more}
    return list(at.anthropic.messages.create(stream=True, **asked))


def message_helper(at: Clients, words: str, **more: Any) -> list[Any]:
    """What the SDK's own stream helper makes of a message: its events, and its last object."""
    asked = {"model": "m", "max_tokens": 100, "messages": said(words), **more}
    with at.anthropic.messages.stream(**asked) as events:
        return [*events, events.get_final_message()]


def outcome(at: Clients, ask: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """The objects that a call gives, without the receipt that reef documents; for an error, all that it says."""
    try:
        found = ask(at, *words, **more)
    except (openai.OpenAIError, anthropic.AnthropicError, RuntimeError) as error:
        answer = getattr(error, "response", None)
        waits = answer.headers.get("retry-after") if answer is not None else None
        more_of_it = {name: getattr(error, name, None) for name in ("status_code", "body")}
        return {"class": type(error), "said": str(error), "retry-after": waits, **more_of_it}
    return [plain for plain in map(dumped, found) if plain is not None] if isinstance(found, list) else dumped(found)


def dumped(found: Any) -> Json | None:
    """An object of an SDK as plain values; None for the chunk that is only there for the receipt."""
    # The SDK's own unions of parsed items make pydantic warn.
    plain: Json = found.model_dump(warnings=False)
    receipt = plain.pop("reef", None)
    if receipt is None:
        return plain
    assert isinstance(found.reef["agent_record_id"], str) and len(found.reef["agent_record_id"]) == 32
    own = plain.get("object") == "chat.completion.chunk" and not plain["choices"] and plain["usage"] is None
    return None if own else plain


def gist(found: Any) -> Json:
    """What an SDK's final object says, without names that every server makes anew for itself."""
    if hasattr(found, "choices"):
        choice = found.choices[0]
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
        cached = found.usage.prompt_tokens_details.cached_tokens
        counts = (found.usage.prompt_tokens, cached, found.usage.completion_tokens, found.usage.total_tokens)
        return {"text": choice.message.content, "calls": calls, "ends": choice.finish_reason, "usage": counts}
    if hasattr(found, "output"):
        calls = [(item.name, json.loads(item.arguments)) for item in found.output if item.type == "function_call"]
        cached = found.usage.input_tokens_details.cached_tokens
        counts = (found.usage.input_tokens, cached, found.usage.output_tokens, found.usage.total_tokens)
        return {"text": found.output_text, "calls": calls, "ends": found.status, "usage": counts}
    texts = [block.text for block in found.content if block.type == "text"]
    calls = [(block.name, block.input) for block in found.content if block.type == "tool_use"]
    counts = (found.usage.input_tokens, found.usage.cache_read_input_tokens, found.usage.output_tokens)
    return {"text": "".join(texts), "calls": calls, "ends": found.stop_reason, "usage": counts}
