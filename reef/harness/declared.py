"""What the native agent's own entries say of themselves: tools, hooks, agents and graphs.

A program says it in comments at its head, each line with the program's own comment sign:

    # /// tool
    # description: Count the words of a file
    # parameters:
    #   path: {type: string, description: the file}
    # ///

    # /// hook
    # events: [before_tool, after_tool, turn_start, turn_end]
    # tools: [bash]
    # ///

An agent is Markdown whose front matter has `description` and, where it may not use every tool, `tools`. A graph is
JSON: `{"description", "nodes": [{"id", "agent"} or {"id", "prompt"}], "edges": [["from", "to"]]}`.
"""

from __future__ import annotations

import graphlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from reef.errors import InvalidInput
from reef.harness import frontmatter

EVENTS = ("turn_start", "before_tool", "after_tool", "turn_end")
"""When a hook may run."""
MAX_NODES = 16
MAX_DESCRIPTION = 1024
_HEAD_LINES = 200
_OPEN = re.compile(r"\s*(#|//)\s*/// (tool|hook)\s*\Z")
_NAME = re.compile(r"[a-z0-9_-]{1,64}\Z")


@dataclass(frozen=True)
class ToolFacts:
    """What a model is told of a tool."""

    description: str
    parameters: Mapping[str, Any]
    """JSON schema of an object."""


@dataclass(frozen=True)
class HookFacts:
    """When a hook runs."""

    events: tuple[str, ...]
    tools: tuple[str, ...]
    """The tools that it watches; empty for all."""


@dataclass(frozen=True)
class AgentFacts:
    """A sub-agent."""

    description: str
    tools: tuple[str, ...] | None
    """Names of the tools that it may use; None for every one that the main agent has, other agents aside."""
    prompt: str


@dataclass(frozen=True)
class Node:
    """One station of a graph: an agent that is named, or a prompt for the model alone."""

    id: str
    agent: str | None
    prompt: str | None
    after: tuple[str, ...]
    """The nodes whose results it is given."""


@dataclass(frozen=True)
class GraphFacts:
    """A graph of agents and prompts."""

    description: str
    nodes: tuple[Node, ...]
    """In the order in which they run."""
    last: tuple[str, ...]
    """The nodes that no other one follows: their results are the graph's."""


def tool_facts(text: str) -> ToolFacts:
    """What a tool's program says of itself. Raises InvalidInput."""
    head = _head(text, "tool")
    _only(head, "tool", "description", "parameters", "required")
    given = head.get("parameters") or {}
    if not isinstance(given, Mapping) or not all(isinstance(schema, Mapping) for schema in given.values()):
        raise InvalidInput("the tool's parameters are not an object of name to schema")
    required = _names(head.get("required", list(given)), "required")
    unknown = sorted(set(required) - set(map(str, given)))
    if unknown:
        raise InvalidInput(f"the tool requires {unknown[0]!r}, which is none of its parameters")
    try:
        properties = json.loads(json.dumps({str(name): dict(schema) for name, schema in given.items()}))
    except (TypeError, ValueError):
        raise InvalidInput("the tool's parameters are not JSON") from None
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolFacts(_description(head, "tool"), schema)


def hook_facts(text: str) -> HookFacts:
    """When a hook's program wants to run. Raises InvalidInput."""
    head = _head(text, "hook")
    _only(head, "hook", "events", "tools")
    events = _names(head.get("events"), "events")
    unknown = sorted(set(events) - set(EVENTS))
    if unknown or not events:
        what = f"there is no event {unknown[0]!r}" if unknown else "the hook names no event"
        raise InvalidInput(f"{what} (events: {', '.join(EVENTS)})")
    return HookFacts(events, _names(head.get("tools", []), "tools"))


def agent_facts(text: str) -> AgentFacts:
    """Description, tools and prompt of a sub-agent. Raises InvalidInput."""
    values, body = frontmatter.read(text)
    if values is None:
        raise InvalidInput("an agent starts with front matter (description between '---' lines)")
    _only(values, "agent", "description", "tools", "name")
    if not body.strip():
        raise InvalidInput("there is nothing after the front matter")
    tools = None if values.get("tools") is None else _names(values["tools"], "tools")
    return AgentFacts(_description(values, "agent"), tools, body.strip())


def graph_facts(data: Mapping[str, Any]) -> GraphFacts:
    """The nodes of a graph in the order in which they run. Raises InvalidInput, also for a circle."""
    _only(data, "graph", "description", "nodes", "edges")
    nodes, edges = data.get("nodes"), data.get("edges", [])
    if not isinstance(nodes, list) or not 0 < len(nodes) <= MAX_NODES:
        raise InvalidInput(f"a graph has 1 to {MAX_NODES} nodes")
    given = [_node(item) for item in nodes]
    after: dict[str, list[str]] = {node.id: [] for node in given}
    if len(after) != len(given):
        raise InvalidInput("two nodes of the graph have the same id")
    for edge in edges if isinstance(edges, list) else [edges]:
        if not isinstance(edge, list) or len(edge) != 2 or not all(name in after for name in edge):
            raise InvalidInput(f"{json.dumps(edge)[:80]} is not an edge between two nodes")
        after[edge[1]].append(edge[0])
    try:
        order = list(graphlib.TopologicalSorter(after).static_order())
    except graphlib.CycleError as error:
        raise InvalidInput(f"the graph goes in a circle: {' -> '.join(map(str, error.args[1]))}") from None
    by_id = {node.id: node for node in given}
    placed = [Node(name, by_id[name].agent, by_id[name].prompt, tuple(after[name])) for name in order]
    followed = {name for names in after.values() for name in names}
    last = tuple(node.id for node in given if node.id not in followed)
    return GraphFacts(_description(data, "graph"), tuple(placed), last)


def _node(item: object) -> Node:
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str) or _NAME.match(item["id"]) is None:
        raise InvalidInput("a node of the graph has no id of lower-case letters, digits, '-' and '_'")
    _only(item, "node", "id", "agent", "prompt")
    agent, prompt = item.get("agent"), item.get("prompt")
    if (agent is None) == (prompt is None):
        raise InvalidInput(f"the node {item['id']!r} needs either an agent or a prompt")
    if not isinstance(agent or prompt, str):
        raise InvalidInput(f"the node {item['id']!r} names its agent or prompt by something that is not text")
    return Node(item["id"], agent, prompt, ())


def _head(text: str, kind: str) -> Mapping[str, Any]:
    lines = text.replace("\r\n", "\n").split("\n")[:_HEAD_LINES]
    for number, line in enumerate(lines):
        opened = _OPEN.match(line)
        if opened is None or opened.group(2) != kind:
            continue
        block: list[str] = []
        for inner in lines[number + 1 :]:
            told = inner.lstrip()
            if not told.startswith(opened.group(1)):
                break
            told = told.removeprefix(opened.group(1)).removeprefix(" ")
            if told.strip() == "///":
                return _yaml("\n".join(block), kind)
            block.append(told)
        raise InvalidInput(f"the {kind}'s head is opened with '/// {kind}' and never closed with '///'")
    raise InvalidInput(f"the {kind} does not say what it is: its head has no comment '/// {kind}'")


def _yaml(block: str, kind: str) -> Mapping[str, Any]:
    try:
        value = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError):
        raise InvalidInput(f"the {kind}'s head is not YAML") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"the {kind}'s head is not an object of keys and values")
    return value


def _only(values: Mapping[Any, Any], what: str, *known: str) -> None:
    unknown = sorted(set(map(str, values)) - set(known))
    if unknown:
        raise InvalidInput(f"a {what} has no {unknown[0][:80]!r} (it has: {', '.join(known)})")


def _description(values: Mapping[str, Any], what: str) -> str:
    said = values.get("description")
    if not isinstance(said, str) or not said.strip():
        raise InvalidInput(f"the {what} has no description")
    if len(said) > MAX_DESCRIPTION:
        raise InvalidInput(f"the description has {len(said)} characters, at most {MAX_DESCRIPTION}")
    return " ".join(said.split())


def _names(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{what} is not a list of names")
    return tuple(dict.fromkeys(value))
