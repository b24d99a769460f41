"""How much a model is to think: carried where the upstream takes the word, else left out and named.

| hub | messages | responses |
|---|---|---|
| `reasoning_effort` | `output_config.effort`, or a word for the budget of `thinking` | `reasoning.effort` |
"""

from __future__ import annotations

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.gateway.translate.compat import Compat
from reef.gateway.translate.fields import CLIENT_NAMES
from reef.gateway.translate.hub import Json

NO_THINKING = ("none", "minimal")
"""Efforts that become `thinking: disabled` where messages are spoken."""
_OF_OPENAI = (*NO_THINKING, "low", "medium", "high", "xhigh")
_KNOWN = {
    CHAT: _OF_OPENAI,
    RESPONSES: _OF_OPENAI,
    MESSAGES: (*NO_THINKING, "low", "medium", "high", "xhigh", "max"),
}
"""The words that an upstream of a dialect knows; another one would be refused with the whole request."""


def settle(client: str, upstream: str, hub: Json, body: Json, compat: Compat) -> list[str]:
    """Take the effort out of `hub` where it is not carried. Returns the fields of `body` that are left out by that."""
    effort = hub.get("reasoning_effort")
    carried = (client == CHAT or compat.effort) and effort in _KNOWN[upstream]
    if not carried:
        hub.pop("reasoning_effort", None)
    if client != MESSAGES:
        name = CLIENT_NAMES[client].get("reasoning_effort", "reasoning_effort")
        return [] if carried or effort is None else [name]
    left: list[str] = []
    config, thinking = body.get("output_config"), body.get("thinking")
    if not carried and isinstance(config, dict) and config.get("effort") is not None:
        left.append("output_config.effort")
    # No server of another vendor is told not to think by a word that all of them take.
    if thinking is not None and not (carried and isinstance(thinking, dict) and thinking.get("type") != "disabled"):
        left.append("thinking")
    return left
