"""Calls that an agent makes beside its conversation: titles, summaries, tries of the quota. They are never its turns.

An agent offers its tools in every turn, so a call without tools is none; a plain script has no tools either, and its
calls are turns.
"""

from __future__ import annotations

from collections.abc import Mapping

from multidict import istr

from reef.gateway.dialect import RequestFacts

_AGENTS = (istr("x-claude-code-session-id"), istr("x-session-affinity"), istr("thread-id"))
"""Headers that only agents with tools send."""
_QUOTA = "quota"
"""What Claude Code says, asking for one token, to find out whether there is any left."""
_BESIDE = (
    "title generator",
    "generate a title",
    "generate a short title",
    "concise title",
    "sentence-case title",
    "new conversation topic",
    "summarize this coding conversation",
)
"""What the system prompts of titles, topics and summaries say at their beginning."""


def is_side_call(facts: RequestFacts, headers: Mapping[str, str]) -> bool:
    """Whether a request is none of its conversation's turns."""
    if facts.tools:
        return False
    if facts.max_tokens == 1 and facts.preview == _QUOTA:
        return True
    if any(name in headers for name in _AGENTS):
        return True
    system = facts.system.lower()
    return any(words in system for words in _BESIDE)
