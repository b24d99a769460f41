"""Tools, hooks, agents and graphs: who may have them, what is code, and how a request shows them."""

from __future__ import annotations

from typing import Any

import pytest

from reef import __version__
from reef.evaluation.markers import changed_markers
from reef.harness.adapter import fitting, load_adapter, render
from reef.harness.adapter_file import Adapter
from reef.harness.admission import admit
from reef.harness.tree import Entry, Tree

TOOL = "# /// tool\n# description: Count words\n# parameters:\n#   text: {type: string}\n# ///\nprint(1)\n"
HOOK = "# /// hook\n# events: [before_tool]\n# ///\n"
AGENT = "---\ndescription: looks things up\ntools: [read]\n---\nYou only read.\n"
GRAPH = {"description": "two views", "nodes": [{"id": "a", "agent": "reader"}], "edges": []}


@pytest.fixture
def native() -> Adapter:
    return load_adapter("native")


def made(id: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"op": "create", "id": id, "kind": kind, "config": config}


def test_the_native_agent_is_given_them_each_in_its_folder(native: Adapter) -> None:
    tree = Tree().apply(
        [
            made("count", "tool", text=TOOL),
            made("guard", "hook", text=HOOK, ext="sh"),
            made("reader", "agent", text=AGENT),
            made("both", "graph", data=GRAPH),
        ]
    )
    assert sorted(render(tree, native)) == ["agents/reader.md", "graphs/both.json", "hooks/guard.sh", "tools/count.py"]
    assert Tree.from_files(tree.to_files()) == tree


def test_the_version_that_ships_is_reefs_own(native: Adapter) -> None:
    assert native.install is not None and native.install.version == __version__


def test_another_agent_is_refused_them_and_an_install_for_it_leaves_them_out() -> None:
    pi = load_adapter("pi")
    found = admit(Tree(), [made("reader", "agent", text=AGENT)], pi)
    assert found.reasons == ["reader: pi has no place for an agent"]
    kept, left_out = fitting(Tree([Entry.parse("reader", "agent", {"text": AGENT})]), pi)
    assert kept == Tree() and "reader: pi has no place" in left_out[0]


@pytest.mark.parametrize(("kind", "text", "said"), [("tool", TOOL, "a tool"), ("hook", HOOK, "a hook")])
def test_a_tool_and_a_hook_are_code_and_need_the_sandbox(native: Adapter, kind: str, text: str, said: str) -> None:
    found = admit(Tree(), [made("mine", kind, text=text)], native)
    assert (found.ok, found.code_bearing) == (False, True)
    assert found.reasons == [f"mine: needs the sandbox: {said} runs as code"]


def test_an_agent_and_a_graph_of_it_are_no_code(native: Adapter) -> None:
    both = [made("reader", "agent", text=AGENT), made("both", "graph", data=GRAPH)]
    found = admit(Tree(), both, native)
    assert found.ok and not found.code_bearing
    assert admit(Tree(), both[1:], native).reasons == ["both: there is no agent 'reader'"]
    assert found.tree is not None
    removal = admit(found.tree, [{"op": "remove", "id": "reader"}], native)
    assert removal.reasons == ["both: there is no agent 'reader'"]


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (made("t", "tool", text="print(1)\n"), "t: the tool does not say what it is"),
        (made("t", "tool", text=TOOL, ext="exe"), "t: reef's own agent does not load .exe tools (it loads: py, sh)"),
        (made("a", "agent", text="Read.\n"), "a: an agent starts with front matter"),
        (made("g", "graph", data={"description": "x", "nodes": []}), "g: a graph has 1 to 16 nodes"),
        (made("settings", "config", data={"shell": "zsh"}), "settings: needs the sandbox"),
    ],
)
def test_an_entry_that_does_not_say_what_it_is_is_refused(native: Adapter, mutation: dict[str, Any], said: str) -> None:
    assert said in admit(Tree(), [mutation], native).detail


def test_a_request_shows_what_is_offered_as_a_tool(native: Adapter) -> None:
    tree = Tree().apply([made("count", "tool", text=TOOL), made("reader", "agent", text=AGENT)])
    offered = [
        {"type": "function", "function": {"name": "count", "description": "Count words", "parameters": {}}},
        {"type": "function", "function": {"name": "reader", "description": "looks things up", "parameters": {}}},
    ]
    for change in Tree().changes(tree):
        (marker,), lost = changed_markers(change, native)
        assert marker.found({"tools": offered}) and not marker.found({"tools": []}) and not marker.found({})
        assert lost == []
    # What changes only inside a program is in no request.
    other = tree.apply([{"op": "update", "id": "count", "config": {"text": TOOL + "print(2)\n"}}])
    assert changed_markers(tree.changes(other)[0], native) == ([], [])
