"""What may become a candidate, and what each refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from reef.harness.adapter import base_entries, load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.admission import admit, code_reasons
from reef.harness.tree import Tree

KEY = "sk-" + "a1B2c3D4" * 5


@pytest.fixture(scope="module")
def pi() -> Adapter:
    return load_adapter("pi")


@pytest.fixture
def base(pi: Adapter) -> Tree:
    return base_entries(pi)


def rule(text: str, id: str = "ask-1") -> dict[str, Any]:
    return {"op": "create", "id": id, "kind": "rules", "config": {"text": text}}


def skill(text: str, **config: Any) -> dict[str, Any]:
    return {"op": "create", "id": "linter", "kind": "skill", "config": {"text": text, **config}}


def test_a_plain_rule_is_admitted_and_is_no_code(base: Tree, pi: Adapter) -> None:
    found = admit(base, [rule("reproduce it with a failing test first")], pi)
    assert (found.ok, found.reasons, found.code_bearing) == (True, [], False)
    assert found.tree is not None and found.tree.get("ask-1") is not None and found.tree.get("reef-pi") is not None


@pytest.mark.parametrize(
    ("mutations", "said"),
    [
        ([], "no change"),
        ([rule("x"), {"op": "remove", "id": "ask-1"}], "no change"),
        ([rule("x", "../../.bashrc")], "is not an entry id"),
        ([{"op": "remove", "id": "reef-pi"}], "entries that reef ships cannot be changed"),
        ([rule("x", "reef-rules")], "entries that reef ships cannot be changed"),
        ([rule("x") | {"kind": "loop"}], "there is no entry kind 'loop'"),
        ([rule("a" * 70_000)], "65536"),
    ],
)
def test_a_change_that_cannot_be_is_refused(
    base: Tree, pi: Adapter, mutations: list[dict[str, Any]], said: str
) -> None:
    found = admit(base, mutations, pi)
    assert not found.ok and found.tree is None
    assert said in found.detail


def test_a_rule_that_is_in_the_tree_already_is_no_change(base: Tree, pi: Adapter) -> None:
    first = admit(base, [rule("Reproduce it\nfirst")], pi)
    assert first.tree is not None
    again = admit(first.tree, [rule("Reproduce  it first\n", "ask-2")], pi)
    assert again.reasons == ["no change: ask-2 says what ask-1 already says"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# no front matter\n", "starts with front matter"),
        ("---\nname: linter\n", "never closed"),
        ("---\nname: [x] y\n---\nx\n", "not YAML (line 2)"),
        ("---\n- a\n---\nx\n", "not an object"),
        ("---\nname: linter\nname: linter\n---\nx\n", "a key twice"),
        ("---\nname: other\n---\nx\n", "names the skill 'other'"),
        ("---\nname: linter\ndescription: [a]\n---\nx\n", "is not text"),
        ("---\nname: linter\ndescription: " + "d" * 1025 + "\n---\nx\n", "1025 characters, at most 1024"),
        ("---\nname: linter\n---\n\n", "nothing after the front matter"),
    ],
)
def test_front_matter_must_read_back(base: Tree, pi: Adapter, text: str, said: str) -> None:
    found = admit(base, [skill(text)], pi)
    assert not found.ok
    assert found.detail.startswith("linter: ") and said in found.detail


@pytest.mark.parametrize("text", ["---\nname: linter\n---\nx\n", "---\ndescription: ''\n---\nx\n", "---\n---\nx\n"])
def test_a_skill_without_a_description_is_for_reach_to_judge(base: Tree, pi: Adapter, text: str) -> None:
    assert admit(base, [skill(text)], pi).ok


@pytest.mark.parametrize(
    "mutation",
    [
        rule(f"use {KEY} for the upstream"),
        skill(f"---\ndescription: x\n---\nline\nexport OPENAI_API_KEY={KEY}\n"),
        skill("---\ndescription: x\n---\nx\n", files={"more.md": f"token {KEY}"}),
        {"op": "create", "id": "greet", "kind": "agent_command", "config": {"text": f"Say {KEY}"}},
        {"op": "create", "id": "settings", "kind": "config", "config": {"data": {"defaultThinkingLevel": KEY}}},
    ],
)
def test_a_written_credential_is_refused_with_its_place_and_without_its_value(
    base: Tree, pi: Adapter, mutation: dict[str, Any]
) -> None:
    found = admit(base, [mutation], pi)
    assert not found.ok and "holds a credential" in found.detail
    assert mutation["id"] in found.detail and "line " in found.detail
    assert KEY not in found.detail


def test_the_name_of_a_variable_is_no_credential(base: Tree, pi: Adapter) -> None:
    assert admit(base, [rule("the key is in $OPENAI_API_KEY, never print it")], pi).ok


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (
            {"op": "create", "id": "notify", "kind": "code_extension", "config": {"text": "x", "ext": "ts"}},
            "notify: needs the sandbox: an extension runs as code",
        ),
        (
            skill("---\ndescription: x\n---\nx\n", files={"run.sh": "rm -rf /"}),
            "linter: needs the sandbox: the file 'run.sh' is not Markdown",
        ),
        (
            {"op": "create", "id": "settings", "kind": "config", "config": {"data": {"packages": ["npm:x"]}}},
            "settings: needs the sandbox: the setting 'settings.packages' is not known to be harmless",
        ),
        (
            {"op": "create", "id": "settings", "kind": "config", "config": {"data": {"compaction": {"x": {}}}}},
            "settings: needs the sandbox: the setting 'settings.compaction.x' is not known to be harmless",
        ),
    ],
)
def test_what_runs_as_code_needs_the_sandbox(base: Tree, pi: Adapter, mutation: dict[str, Any], said: str) -> None:
    found = admit(base, [mutation], pi)
    assert (found.ok, found.code_bearing, found.tree) == (False, True, None)
    assert found.reasons == [said]


def test_a_shell_call_in_a_text_is_code_for_an_agent_that_runs_it(base: Tree, pi: Adapter) -> None:
    runs_shell = pi.model_copy(update={"code": pi.code.model_copy(update={"shell_interpolation": [r"!`[^`]*`"]})})
    command = {"op": "create", "id": "log", "kind": "agent_command", "config": {"text": "Look at !`git log`\n"}}
    assert admit(base, [command], pi).ok
    refused = admit(base, [command], runs_shell)
    assert refused.code_bearing and "needs the sandbox" in refused.detail


def test_a_text_that_is_code_for_another_agent_is_admitted_as_code_that_waits(base: Tree, pi: Adapter) -> None:
    text = "---\nname: linter\ndescription: lint\nhooks: {}\n---\nNow: !`touch owned`\n"
    found = admit(base, [skill(text)], pi, [pi, load_adapter("claude")])
    assert found.ok and found.tree is not None and found.code_bearing
    assert "waits for your yes" in found.detail and "calls a shell when Claude Code reads it" in found.detail
    assert "'hooks' in the front matter" in found.detail
    plain = admit(base, [skill("---\nname: linter\ndescription: lint\n---\nRun it.\n")], pi, [load_adapter("claude")])
    assert plain.ok and not plain.code_bearing and plain.detail == "admitted"


def test_settings_on_the_allow_list_and_removals_are_no_code(base: Tree, pi: Adapter) -> None:
    data = {"compaction": {"enabled": False}, "defaultThinkingLevel": "low"}
    found = admit(base, [{"op": "create", "id": "settings", "kind": "config", "config": {"data": data}}], pi)
    assert found.ok and not found.code_bearing
    removal = base.changes(Tree())[0]
    assert removal.op == "remove" and code_reasons(removal, pi) == []


def test_an_unknown_config_target_and_a_foreign_extension_are_refused(base: Tree, pi: Adapter) -> None:
    target = {"op": "create", "id": "models", "kind": "config", "config": {"data": {}}}
    assert "no config target of this name (targets: settings)" in admit(base, [target], pi).detail
    foreign = {"op": "create", "id": "x", "kind": "code_extension", "config": {"text": "x", "ext": "py"}}
    assert "does not load .py extensions" in admit(base, [foreign], pi).detail


def test_every_reason_is_told_at_once(base: Tree, pi: Adapter) -> None:
    found = admit(base, [rule("x", "BAD"), {"op": "remove", "id": "nothing"}, rule("x", "reef-x")], pi)
    assert len(found.reasons) == 3


def test_rules_that_are_too_long_together_say_by_how_many_bytes(base: Tree, pi: Adapter) -> None:
    tight = pi.model_copy(update={"limits": pi.limits.model_copy(update={"rules_bytes": 100})})
    found = admit(base, [rule("a" * 60), rule("é" * 40, "ask-2")], tight)
    assert "144 bytes together, 44 more" in found.detail
