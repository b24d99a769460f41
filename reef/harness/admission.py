"""Admission: what may become a candidate at all, judged before anything runs.

A change is admitted when its names are safe, it renders for the agent, its front matter reads back, no credential is
written in it, it changes something, and none of it is code. Whether the agent then really reads it is the reach gate's
question (`reef.evaluation.reach`), not this one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reef.credentials import find_credentials
from reef.errors import InvalidInput
from reef.harness import declared, frontmatter
from reef.harness.adapter import render
from reef.harness.adapter_file import Adapter
from reef.harness.tree import PROGRAMS, RESERVED, Change, Entry, Tree

NEEDS_SANDBOX = "needs the sandbox"
_TEXTS = ("skill", "agent_command")
_PROGRAM_WORDS = {"code_extension": "an extension", "tool": "a tool", "hook": "a hook"}


@dataclass(frozen=True)
class Admission:
    """The outcome: `tree` is the candidate when `ok`, else None and `reasons` says why, each naming its entry."""

    ok: bool
    reasons: list[str] = field(default_factory=list)
    tree: Tree | None = None
    code_bearing: bool = False
    """Whether the change adds or changes something that runs as code."""
    elsewhere: list[str] = field(default_factory=list)
    """Why it is code for another agent, each naming its entry; admitted, it waits for the person."""

    @property
    def detail(self) -> str:
        """One line for a step's row."""
        if self.reasons or not self.elsewhere:
            return "; ".join(self.reasons) if self.reasons else "admitted"
        return f"admitted, and waits for your yes: {'; '.join(self.elsewhere)}"


def admit(
    current: Tree, mutations: Iterable[Mapping[str, Any]], adapter: Adapter, others: Sequence[Adapter] = ()
) -> Admission:
    """Judge a sequence of mutations on `current` for one agent. Raises nothing: every refusal is a reason.

    `others` are the agents that the version may be installed for as well. What is code for one of them alone never runs
    in a check of this one, so it is admitted, as code.
    """
    candidate = current
    reasons: list[str] = []
    for mutation in mutations:
        name = mutation.get("id")
        if isinstance(name, str) and name.startswith(RESERVED):
            reasons.append(f"{name[:80]!r}: entries that reef ships cannot be changed")
            continue
        try:
            candidate = candidate.apply([mutation])
        except InvalidInput as error:
            reasons.append(error.message)
    if reasons:
        return Admission(False, reasons)
    changes = current.changes(candidate)
    if not changes:
        return Admission(False, ["no change: the tree stays as it is"])
    code = [reason for change in changes if change.after for reason in code_reasons(change, adapter)]
    for change in changes:
        if change.after is not None:
            reasons += _faults(change.after, adapter) + _repeats(current, change.after)
    reasons += _missing_agents(candidate) + _sizes(candidate, adapter)
    reasons += [f"{reason.partition(': ')[0]}: {NEEDS_SANDBOX}: {reason.partition(': ')[2]}" for reason in code]
    away = code_elsewhere(changes, others)
    return Admission(not reasons, reasons, None if reasons else candidate, bool(code or away), away)


def code_elsewhere(changes: Iterable[Change], others: Sequence[Adapter]) -> list[str]:
    """Why created or updated texts are code for one of these agents, each `<id>: <reason>`.

    A tree is not bound to one agent: a command that one reads as words starts a shell in another.
    """
    texts = [change for change in changes if change.after is not None and change.after.kind in _TEXTS]
    return list(dict.fromkeys(reason for c in texts for other in others for reason in code_reasons(c, other)))


def code_reasons(change: Change, adapter: Adapter) -> list[str]:
    """Why a created or updated entry is code, each `<id>: <reason>`; empty when it is not, or when it is removed."""
    entry = change.after
    if entry is None:
        return []
    if entry.kind in PROGRAMS:
        return [f"{entry.id}: {_PROGRAM_WORDS[entry.kind]} runs as code"]
    if entry.kind == "config":
        keys = [f"{entry.id}.{key}" for key in _keys(entry.config["data"])]
        outside = sorted(key for key in keys if not _allowed(key, adapter.code.config_keys))
        return [f"{entry.id}: the setting {key!r} is not known to be harmless" for key in outside]
    found: list[str] = []
    if entry.kind in _TEXTS:
        for pattern in adapter.code.shell_interpolation:
            if re.search(pattern, entry.text):
                found.append(f"{entry.id}: the text calls a shell when {adapter.title} reads it")
        found += _acting_keys(entry, adapter)
    for path in entry.config.get("files", {}):
        if not path.lower().endswith(".md"):
            found.append(f"{entry.id}: the file {path!r} is not Markdown")
    return found


def _acting_keys(entry: Entry, adapter: Adapter) -> list[str]:
    """Keys of the front matter by which the agent may start programs or allow tools."""
    harmless = adapter.code.front_matter_keys
    if harmless is None:
        return []
    try:
        values, _ = frontmatter.read(entry.text)
    except InvalidInput:
        # Named as a fault of the entry; what cannot be read is not harmless either.
        return [f"{entry.id}: its front matter cannot be read"]
    outside = sorted(set(values or {}) - set(harmless))
    return [f"{entry.id}: {key!r} in the front matter is not known to be harmless" for key in outside]


def _faults(entry: Entry, adapter: Adapter) -> list[str]:
    """What is wrong with one entry by itself: rendering, front matter, credentials, size."""
    found: list[str] = []
    try:
        files = render(Tree([entry]), adapter)
    except InvalidInput as error:
        return [error.message]
    for path, content in files.items():
        if len(content) > adapter.limits.entry_bytes:
            found.append(f"{entry.id}: {path} has {len(content)} bytes, at most {adapter.limits.entry_bytes}")
        found += _credentials(entry.id, path, content.decode())
    try:
        _check_front_matter(entry, adapter)
        _check_declared(entry)
    except InvalidInput as error:
        found.append(f"{entry.id}: {error.message}")
    return found


def _check_front_matter(entry: Entry, adapter: Adapter) -> None:
    if entry.kind not in _TEXTS:
        return
    values, body = frontmatter.read(entry.text)
    if not body.strip():
        raise InvalidInput("there is nothing after the front matter")
    description = frontmatter.field(values, "description")
    if entry.kind == "agent_command":
        return
    if values is None:
        raise InvalidInput("a skill starts with front matter (name and description between '---' lines)")
    name = frontmatter.field(values, "name")
    if name not in ("", entry.id):
        raise InvalidInput(f"the front matter names the skill {name[:80]!r}")
    if len(description) > adapter.limits.skill_description:
        limit = adapter.limits.skill_description
        raise InvalidInput(f"the description has {len(description)} characters, at most {limit}")


def _check_declared(entry: Entry) -> None:
    """Raises InvalidInput when an entry of the native agent does not say what it is."""
    if entry.kind == "tool":
        declared.tool_facts(entry.text)
    elif entry.kind == "hook":
        declared.hook_facts(entry.text)
    elif entry.kind == "agent":
        declared.agent_facts(entry.text)
    elif entry.kind == "graph":
        declared.graph_facts(entry.config["data"])


def _missing_agents(candidate: Tree) -> list[str]:
    """The graphs that name an agent which is not there."""
    there = {entry.id for entry in candidate.of_kind("agent")}
    found: list[str] = []
    for entry in candidate.of_kind("graph"):
        try:
            nodes = declared.graph_facts(entry.config["data"]).nodes
        except InvalidInput:
            # Said already, as the entry's own fault.
            continue
        found += [
            f"{entry.id}: there is no agent {node.agent!r}" for node in nodes if node.agent and node.agent not in there
        ]
    return found


def _credentials(owner: str, path: str, text: str) -> list[str]:
    # The place is named and the value is not: the sentence is stored in the step's row and shown to the proposer.
    for number, line in enumerate(text.split("\n"), 1):
        for kind in find_credentials(line):
            return [f"{owner}: line {number} of {path} holds a credential ({kind}); name a variable instead"]
    kinds = find_credentials(text)
    return [f"{owner}: {path} holds a credential ({kinds[0]}); name a variable instead"] if kinds else []


def _repeats(current: Tree, entry: Entry) -> list[str]:
    """A rule that says word for word what another rule of the tree already says."""
    if entry.kind != "rules":
        return []
    said = _flat(entry.text)
    for other in current.of_kind("rules"):
        if other.id != entry.id and _flat(other.text) == said:
            return [f"no change: {entry.id} says what {other.id} already says"]
    return []


def _sizes(candidate: Tree, adapter: Adapter) -> list[str]:
    found: list[str] = []
    if len(candidate.entries) > adapter.limits.entries:
        found.append(f"the tree has {len(candidate.entries)} entries, at most {adapter.limits.entries}")
    rules = candidate.rules_bytes
    if rules > adapter.limits.rules_bytes:
        over = rules - adapter.limits.rules_bytes
        found.append(f"the rules have {rules} bytes together, {over} more than {adapter.title} is given")
    return found


def _keys(data: Mapping[str, Any], above: str = "") -> list[str]:
    found: list[str] = []
    for key, value in data.items():
        here = f"{above}{key}"
        found += _keys(value, here + ".") if isinstance(value, Mapping) and value else [here]
    return found


def _allowed(key: str, allowed: Iterable[str]) -> bool:
    return any(key == name or key.startswith(name + ".") for name in allowed)


def _flat(text: str) -> str:
    return " ".join(text.split())
