"""What one upstream takes and another refuses: its settings, with defaults that the plainest server takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reef.gateway.translate.hub import Json


@dataclass(frozen=True, slots=True)
class Compat:
    """How to write a translated request for one upstream."""

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The limit's name in chat completions: every local server knows the older one, some of OpenAI's models do not."""
    effort: bool = False
    """Carry the effort of reasoning that Claude Code and Codex send with every call. Off, because many servers answer
    400 to it for a model that does not reason. A chat client's own `reasoning_effort` is always carried. See
    `effort.py`."""


def older_spellings(request: Json) -> Json:
    """A chat request for an upstream that refuses newer words: role `developer` becomes `system`,
    `max_completion_tokens` becomes `max_tokens`. `request` itself when it holds neither.
    """
    changed: Json = {}
    messages = request.get("messages")
    if isinstance(messages, list) and any(_is_developer(message) for message in messages):
        changed["messages"] = [
            {**message, "role": "system"} if _is_developer(message) else message for message in messages
        ]
    if "max_completion_tokens" not in request:
        return {**request, **changed} if changed else request
    found = {name: value for name, value in request.items() if name != "max_completion_tokens"}
    found.setdefault("max_tokens", request["max_completion_tokens"])
    return {**found, **changed}


def _is_developer(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") == "developer"
