"""What tools, hooks, agents and graphs say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from reef.errors import InvalidInput
from reef.harness.declared import agent_facts, graph_facts, hook_facts, tool_facts

TOOL = """#!/usr/bin/env python3
# /// tool
# description: Count the words
#   of a file
# parameters:
#   path: {type: string, description: the file}
#   lines: {type: integer}
# required: [path]
# ///
print("{}")
"""


def test_a_tool_says_in_comments_at_its_head_what_it_takes() -> None:
    facts = tool_facts(TOOL)
    assert facts.description == "Count the words of a file"
    assert facts.parameters == {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "the file"}, "lines": {"type": "integer"}},
        "required": ["path"],
    }
    slashes = tool_facts("// /// tool\n// description: x\n// ///\n")
    assert slashes.parameters == {"type": "object", "properties": {}, "required": []}


def test_a_hook_names_its_events_and_the_tools_it_watches() -> None:
    facts = hook_facts("# /// hook\n# events: [before_tool, turn_end]\n# tools: [bash]\n# ///\n")
    assert (facts.events, facts.tools) == (("before_tool", "turn_end"), ("bash",))


def test_an_agent_is_a_prompt_with_a_description_and_perhaps_its_tools() -> None:
    facts = agent_facts("---\ndescription: looks things up\ntools: [read]\n---\nRead, then answer.\n")
    assert (facts.description, facts.tools, facts.prompt) == ("looks things up", ("read",), "Read, then answer.")
    assert agent_facts("---\ndescription: x\n---\ny\n").tools is None


def test_a_graph_runs_each_node_after_those_whose_results_it_needs() -> None:
    nodes: list[dict[str, Any]] = [
        {"id": "join", "prompt": "put both together"},
        {"id": "left", "agent": "reader"},
        {"id": "right", "prompt": "guess"},
    ]
    facts = graph_facts({"description": "two views", "nodes": nodes, "edges": [["left", "join"], ["right", "join"]]})
    assert [(node.id, node.after) for node in facts.nodes] == [
        ("left", ()),
        ("right", ()),
        ("join", ("left", "right")),
    ]
    assert facts.last == ("join",)


@pytest.mark.parametrize(
    ("read", "given", "said"),
    [
        (tool_facts, "print(1)\n", "does not say what it is"),
        (tool_facts, "# /// tool\n# description: x\nprint(1)\n", "never closed"),
        (tool_facts, "# /// tool\n# parameters: {}\n# ///\n", "no description"),
        (tool_facts, "# /// tool\n# description: x\n# shell: y\n# ///\n", "no 'shell'"),
        (tool_facts, "# /// tool\n# description: x\n# required: [a]\n# ///\n", "requires 'a'"),
        (tool_facts, "# /// tool\n# description: x\n# parameters: [a]\n# ///\n", "not an object"),
        (tool_facts, "# /// tool\n# {\n# ///\n", "not YAML"),
        (hook_facts, "# /// hook\n# events: [sometimes]\n# ///\n", "no event 'sometimes'"),
        (hook_facts, "# /// hook\n# tools: [bash]\n# ///\n", "not a list of names"),
        (agent_facts, "Read.\n", "starts with front matter"),
        (agent_facts, "---\ndescription: x\n---\n", "nothing after"),
        (agent_facts, "---\ndescription: x\ntools: bash\n---\nx\n", "not a list"),
        (graph_facts, {"description": "x", "nodes": []}, "1 to 16 nodes"),
        (graph_facts, {"description": "x", "nodes": [{"id": "a"}]}, "either an agent or a prompt"),
        (graph_facts, {"description": "x", "nodes": [{"id": "a", "prompt": "p"}] * 2}, "the same id"),
        (
            graph_facts,
            {"description": "x", "nodes": [{"id": "a", "prompt": "p"}], "edges": [["a", "b"]]},
            "not an edge",
        ),
        (
            graph_facts,
            {"description": "x", "nodes": [{"id": "a", "prompt": "p"}], "edges": [["a", "a"]]},
            "in a circle",
        ),
    ],
)
def test_what_says_too_little_or_something_else_is_refused(read: Any, given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(given)
