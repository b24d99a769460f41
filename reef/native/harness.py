"""The installed tree as the agent uses it, read anew at every turn so that an install reaches a running session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from reef.errors import InvalidInput
from reef.harness import frontmatter
from reef.harness.declared import (
    AgentFacts,
    GraphFacts,
    HookFacts,
    ToolFacts,
    agent_facts,
    graph_facts,
    hook_facts,
    tool_facts,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Skill:
    """Know-how that is read on demand."""

    name: str
    description: str
    file: Path
    body: str


@dataclass(frozen=True)
class Program:
    """A file that runs as a child process."""

    name: str
    file: Path


@dataclass
class Harness:
    """Everything that the installed version gives the agent."""

    rules: str = ""
    skills: dict[str, Skill] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    """Name to text, without front matter."""
    tools: dict[str, tuple[Program, ToolFacts]] = field(default_factory=dict)
    hooks: dict[str, tuple[Program, HookFacts]] = field(default_factory=dict)
    agents: dict[str, AgentFacts] = field(default_factory=dict)
    graphs: dict[str, GraphFacts] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What could not be read, one sentence each."""


def read_harness(folder: Path) -> Harness:
    """The harness in the agent's config home. Never raises: what is broken stands in `faults` and is left out."""
    found = Harness()
    rules = folder / "rules.md"
    if rules.is_file():
        found.rules = rules.read_text(encoding="utf-8", errors="replace").strip()
    _each(found, folder.glob("skills/*/SKILL.md"), lambda file: file.parent.name, found.skills, _skill)
    _each(found, folder.glob("commands/*.md"), _stem, found.commands, lambda name, file, text: _body(text))
    _each(found, folder.glob("tools/*"), _stem, found.tools, lambda n, file, text: (Program(n, file), tool_facts(text)))
    _each(found, folder.glob("hooks/*"), _stem, found.hooks, lambda n, file, text: (Program(n, file), hook_facts(text)))
    _each(found, folder.glob("agents/*.md"), _stem, found.agents, lambda name, file, text: agent_facts(text))
    _each(found, folder.glob("graphs/*.json"), _stem, found.graphs, lambda name, file, text: graph_facts(_object(text)))
    return found


def _each(
    found: Harness,
    files: Iterable[Path],
    name_of: Callable[[Path], str],
    place: dict[str, T],
    read: Callable[[str, Path, str], T],
) -> None:
    for file in sorted(files):
        if not file.is_file():
            continue
        name = name_of(file)
        try:
            place[name] = read(name, file, file.read_text(encoding="utf-8"))
        except (InvalidInput, OSError, UnicodeDecodeError) as error:
            reason = error.message if isinstance(error, InvalidInput) else str(error)
            found.faults.append(f"{file.parent.name}/{file.name} is left out: {reason}")


def _stem(file: Path) -> str:
    return file.stem


def _skill(name: str, file: Path, text: str) -> Skill:
    values, body = frontmatter.read(text)
    shown = frontmatter.field(values, "name") or name
    return Skill(shown, frontmatter.field(values, "description"), file, body.strip())


def _body(text: str) -> str:
    return frontmatter.read(text)[1].strip()


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        raise InvalidInput("it is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidInput("it holds no object")
    return value
