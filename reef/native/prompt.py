"""What the model is given beside the conversation, and how much of the conversation fits beside it."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

from reef.native.harness import Harness
from reef.native.home import Model
from reef.native.tools import cut

Json = dict[str, Any]
BYTES_A_TOKEN = 3
"""Fewer than a token has on average: what is left out is better too much than too little."""
_OWN_FILE = "AGENTS.md"
_OWN_MAX = 16384
_SHORT = 400
"""Bytes of an old tool result that stay when there is no room for all of it."""
_TOO_LONG = re.compile(r"request needs about ([\d,]+) tokens, the model has ")
_NEWEST = 2
"""Messages at the end that are never shortened."""

_ROLE = """You are a coding agent. You work in {cwd} on {system}.
Look before you change something. Use the tools for everything that concerns files and commands, and go on until the \
task is done; then say in a few words what you did and what you did not do."""


def system_prompt(harness: Harness, cwd: Path) -> str:
    """The system prompt of one turn: the role, the rules, the project's own words, the list of skills."""
    parts = [_ROLE.format(cwd=cwd, system=platform.system())]
    if harness.rules:
        parts.append(harness.rules)
    own = cwd / _OWN_FILE
    if own.is_file():
        text = own.read_text(encoding="utf-8", errors="replace").strip()
        parts.append(f"From {_OWN_FILE} of this project:\n\n{cut(text, _OWN_MAX, 'file')}")
    if harness.skills:
        listed = [f"- {skill.name}: {skill.description} ({skill.file})" for skill in harness.skills.values()]
        parts.append("Skills; read the file of one before you do what it is for:\n" + "\n".join(listed))
    return "\n\n".join(parts)


def fitting(
    system: str, tools: list[Json], messages: list[Json], model: Model, refused_at: int | None = None
) -> tuple[list[Json], int]:
    """The conversation as it is sent, and how many of its messages were left out or shortened to make it fit.

    Words that never got an answer are left out. Results of earlier turns' tools are shortened first, then whole turns
    are left out, the oldest first, and at last older results of the current turn are shortened. What is still too long
    is the server's to refuse; `refused_at` is then the number of tokens that it counted, and the newest results are
    shortened too.
    """
    share, newest = float(BYTES_A_TOKEN), _NEWEST
    if refused_at:
        before, _ = fitting(system, tools, messages, model)
        share, newest = (_size(before) + _size(tools)) / refused_at, 0
    room = int((model.context_window - model.max_tokens) * share) - _size(system) - _size(tools)
    sent = [dict(message) for place, message in enumerate(messages) if not _unanswered(messages, place)]
    changed = len(messages) - len(sent)
    turns = [place for place, message in enumerate(sent) if message.get("role") == "user"]
    last = turns[-1] if turns else 0
    total = sum(map(_size, sent))
    total, shortened = _shorten(sent, range(last), total, room)
    start = 0
    for turn in turns[1:]:
        if total <= room:
            break
        total -= sum(map(_size, sent[start:turn]))
        start = turn
    changed += start + sum(place >= start for place in shortened)
    _, more = _shorten(sent, range(last, len(sent) - newest), total, room)
    return [{"role": "system", "content": system}, *sent[start:]], changed + len(more)


def refused_at(message: str) -> int | None:
    """The tokens that the daemon counted in a request which it refused as too long; None for another refusal."""
    found = _TOO_LONG.search(message)
    return int(found[1].replace(",", "")) if found else None


def _unanswered(messages: list[Json], place: int) -> bool:
    """Whether a message of the person is followed by another one: the turn failed before anything was said."""
    following = messages[place + 1] if place + 1 < len(messages) else {}
    return messages[place].get("role") == "user" and following.get("role") == "user"


def _shorten(sent: list[Json], places: range, total: int, room: int) -> tuple[int, list[int]]:
    """Shorten results of tools at `places` until all fits. Returns the size of all, and which ones were shortened."""
    done: list[int] = []
    for place in places:
        content = sent[place].get("content")
        if total <= room:
            break
        if sent[place].get("role") == "tool" and isinstance(content, str) and len(content) > 2 * _SHORT:
            before = _size(sent[place])
            sent[place]["content"] = cut(content, _SHORT, "result")
            total -= before - _size(sent[place])
            done.append(place)
    return total, done


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
