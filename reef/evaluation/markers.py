"""What to look for in an agent's request to know that it was given an entry.

A marker is a question to one request: is this text in what the model is sent? Rules are looked for word for word, a
skill by the name and description that the agent lists, a command by the expansion of what a person types.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reef.harness import declared, frontmatter
from reef.harness.adapter_file import Adapter
from reef.harness.tree import Change, Entry

WORDS = ("wordone", "wordtwo")
"""What follows a command that is tried."""

Body = dict[str, Any]


@dataclass(frozen=True)
class Marker:
    """One thing to find in the request that follows `prompt` (None: any prompt)."""

    what: str
    """What is looked for, in words: `its text`, `its description`."""
    prompt: str | None
    found: Callable[[Body], bool]


def changed_markers(change: Change, adapter: Adapter) -> tuple[list[Marker], list[Marker]]:
    """What the change brings and what it takes away.

    The first list must be absent from the current tree's request and present in the candidate's, the second the other
    way round. An update is judged by what differs; both lists are empty for a kind that no request shows, and for an
    update that changes nothing the agent sends.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return (_markers(after, adapter) if after else []), (_markers(before, adapter) if before else [])
    if after.kind == "rules":
        old, new = squeezed(before.text), squeezed(after.text)
        gained = [] if new in old else _markers(after, adapter)
        return gained, ([] if old in new else _markers(before, adapter))
    if after.kind == "skill":
        return _skill_update(before, after, adapter)
    if after.kind in _OFFERED and _offer(before) == _offer(after):
        return [], []
    return _markers(after, adapter), _markers(before, adapter)


def squeezed(text: str) -> str:
    """`text` without any blanks: agents indent and rewrap what they are given."""
    return "".join(text.split())


def texts(body: Body) -> str:
    """Everything the model is told in a request, tools aside, squeezed."""
    return squeezed("\n".join(text for key in _TOLD for text in _strings(body.get(key))))


def last_user_text(body: Body) -> str:
    """The text of the last user message, squeezed; `""` when there is none."""
    messages = body.get("messages") or body.get("input") or []
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            return squeezed("\n".join(_strings(message.get("content"))))
    return ""


def skill_facts(entry: Entry) -> tuple[str, str, str]:
    """Name, description and instructions of a skill; the name is the entry's id when the front matter has none."""
    values, body = frontmatter.read(entry.text)
    return frontmatter.field(values, "name") or entry.id, frontmatter.field(values, "description"), body


_TOLD = ("system", "instructions", "messages", "input")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    if isinstance(value, dict):
        return [text for key in ("content", "text") for text in _strings(value.get(key))]
    return []


def _markers(entry: Entry, adapter: Adapter) -> list[Marker]:
    if entry.kind == "rules":
        return [_text("its text", entry.text)]
    if entry.kind == "skill":
        name, description, _ = skill_facts(entry)
        return [_listed(what, text, adapter) for what, text in _skill_texts(name, description, adapter)]
    if entry.kind == "agent_command":
        return [_command(entry, adapter)]
    return [_offered(entry)] if entry.kind in _OFFERED else []


_OFFERED = ("tool", "agent", "graph")
"""The kinds that the native agent offers to the model as tools."""


def _offer(entry: Entry) -> tuple[str, str]:
    """Name and description under which the model is offered an entry."""
    if entry.kind == "graph":
        return entry.id, declared.graph_facts(entry.config["data"]).description
    facts = declared.tool_facts(entry.text) if entry.kind == "tool" else declared.agent_facts(entry.text)
    return entry.id, facts.description


def _offered(entry: Entry) -> Marker:
    wanted = _offer(entry)

    def found(body: Body) -> bool:
        tools = body.get("tools")
        functions = (
            [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        )
        return any(
            isinstance(function, dict) and (function.get("name"), function.get("description")) == wanted
            for function in functions
        )

    return Marker("its offer as a tool", None, found)


def _text(what: str, text: str, prompt: str | None = None) -> Marker:
    wanted = squeezed(text)
    return Marker(what, prompt, lambda body: wanted in texts(body))


def _listed(what: str, text: str, adapter: Adapter) -> Marker:
    wanted, escaped = squeezed(text), adapter.reach.escape == "xml"
    return Marker(what, None, lambda body: wanted in (html.unescape(texts(body)) if escaped else texts(body)))


def _skill_texts(name: str, description: str, adapter: Adapter) -> list[tuple[str, str]]:
    """(word for it, text that the agent writes) for each part of a skill that the agent lists."""
    found: list[tuple[str, str]] = []
    for template in adapter.reach.skill:
        what = "its description" if "{description}" in template else "its name"
        found.append((what, template.replace("{name}", name).replace("{description}", description)))
    return found


def _skill_update(before: Entry, after: Entry, adapter: Adapter) -> tuple[list[Marker], list[Marker]]:
    old, new = skill_facts(before), skill_facts(after)
    was, now = _skill_texts(*old[:2], adapter), _skill_texts(*new[:2], adapter)
    gained = [_listed(*pair, adapter) for pair in now if pair not in was]
    lost = [_listed(*pair, adapter) for pair in was if pair not in now]
    if adapter.reach.body:
        typed = adapter.reach.body.replace("{id}", after.id)
        if squeezed(new[2]) not in squeezed(old[2]):
            gained.append(_text("its instructions", new[2], typed))
        if squeezed(old[2]) not in squeezed(new[2]):
            lost.append(_text("its instructions", old[2], typed))
    return gained, lost


def _command(entry: Entry, adapter: Adapter) -> Marker:
    typed = adapter.reach.command.replace("{id}", entry.id).replace("{words}", " ".join(WORDS))
    _, body = frontmatter.read(entry.text)
    pattern, at = "", 0
    for match in re.finditer(adapter.reach.placeholders, body):
        pattern += re.escape(squeezed(body[at : match.start()])) + _filled(match.group(), adapter.reach.first)
        at = match.end()
    wanted = re.compile(pattern + re.escape(squeezed(body[at:])), re.DOTALL)

    def found(request: Body) -> bool:
        said = last_user_text(request)
        match = wanted.search(said) if adapter.reach.around else wanted.fullmatch(said)
        return said != squeezed(typed) and match is not None

    return Marker("its expansion", typed, found)


def _filled(placeholder: str, first: int) -> str:
    """The pattern of what the agent puts in place of a placeholder, given `WORDS`; `first` numbers the first word."""
    name = placeholder.lstrip("$")
    if name in ("ARGUMENTS", "@"):
        return "".join(WORDS)
    if name.isdigit():
        number = int(name) + 1 - first
        if not 0 < number <= len(WORDS):
            return ""
        # Some agents put the rest of the words in place of the highest number as well.
        return WORDS[number - 1] + f"(?:{''.join(WORDS[number:])})?"
    return ".*"
