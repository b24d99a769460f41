"""The tree of entries: its form as files, its changes, and the names it takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef.errors import InvalidInput
from reef.harness.tree import Change, Entry, Tree, entry_of

RULE = {"op": "create", "id": "ask-1", "kind": "rules", "config": {"text": "reproduce it first"}}
SKILL = {
    "op": "create",
    "id": "linter",
    "kind": "skill",
    "config": {"text": "---\nname: linter\n---\nRun it.\n", "files": {"reference/rules.md": "# rules\n"}},
}

# Names and paths that would leave the tree, or that some file system takes for something else.
CLIMBING = [
    "../../.bashrc",
    "/etc/x",
    "a/../../b",
    "a\\..\\b",
    "x\u0000y",
    ".git/hooks/post-checkout",
    "CON",
    "con",
    "lpt1",
    "a" * 300,
    "",
    ".",
    "..",
    "-a",
    "a--b",
    "Ask-1",
    "ask 1",
    "ä",
    None,
    7,
]


def made(*mutations: dict[str, Any]) -> Tree:
    return Tree().apply(mutations)


def test_a_tree_becomes_files_and_the_files_become_the_same_tree() -> None:
    tree = made(
        RULE,
        SKILL,
        {"op": "create", "id": "greet", "kind": "agent_command", "config": {"text": "Say hello to $ARGUMENTS\n"}},
        {
            "op": "create",
            "id": "notify",
            "kind": "code_extension",
            "config": {"text": "export default 1\n", "ext": "ts"},
        },
        {
            "op": "create",
            "id": "settings",
            "kind": "config",
            "config": {"target": "settings", "data": {"b": 1, "a": []}},
        },
        {"op": "create", "id": "count", "kind": "tool", "config": {"text": "print(1)\n"}},
        {"op": "create", "id": "watch", "kind": "hook", "config": {"text": "exit 0\n", "ext": "sh"}},
        {"op": "create", "id": "reader", "kind": "agent", "config": {"text": "Read.\n"}},
        {"op": "create", "id": "both", "kind": "graph", "config": {"data": {"nodes": [], "edges": []}}},
    )
    files = tree.to_files()
    assert sorted(files) == [
        "harness/agents/reader.md",
        "harness/commands/greet.md",
        "harness/config/settings.json",
        "harness/extensions/notify.ts",
        "harness/graphs/both.json",
        "harness/hooks/watch.sh",
        "harness/rules/ask-1.md",
        "harness/skills/linter/SKILL.md",
        "harness/skills/linter/reference/rules.md",
        "harness/tools/count.py",
    ]
    assert Tree.from_files(files) == tree
    assert Tree.from_json(tree.to_json()) == tree
    assert Tree.from_files(files).to_files() == files


def test_the_text_of_an_entry_is_kept_to_the_byte() -> None:
    text = "  first\r\nsecond — ünïcode\n\n\n"
    entry = Entry.parse("x", "rules", {"text": text})
    assert Tree([entry]).to_files() == {"harness/rules/x.md": text.encode()}
    assert Tree.from_files({"harness/rules/x.md": text.encode()}).entries[0].text == text


words = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), min_size=1, max_size=40)
ids = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True)


@given(st.dictionaries(ids, words.filter(str.strip), max_size=6))
def test_any_set_of_rules_survives_the_round_trip(texts: dict[str, str]) -> None:
    entries = [Entry("r-" + name, "rules", {"text": text}) for name, text in texts.items()]
    assert Tree.from_files(Tree(entries).to_files()) == Tree(entries)


def test_files_of_other_components_are_not_the_trees() -> None:
    files = {"weights/adapter_config.json": b"{}", ".gitattributes": b"", "harness/rules/a.md": b"a"}
    assert [entry.id for entry in Tree.from_files(files).entries] == ["a"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("harness/rules/a.txt", b"x"),
        ("harness/rules/deep/a.md", b"x"),
        ("harness/other/a.md", b"x"),
        ("harness/rules/a.md", b"\xff\xfe"),
        ("harness/rules/../a.md", b"x"),
        ("harness/config/settings.json", b"not json"),
        ("harness/skills/linter/notes.md", b"a skill without its SKILL.md"),
        ("harness/loose.md", b"x"),
    ],
)
def test_a_file_that_is_no_entry_is_refused_and_named(path: str, body: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        Tree.from_files({path: body})
    assert "linter" in refused.value.message or "a" in refused.value.message


@pytest.mark.parametrize("name", CLIMBING)
def test_a_name_that_climbs_out_of_the_tree_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="is not an entry id"):
        Tree().apply([RULE | {"id": name}])


@pytest.mark.parametrize("path", [name for name in CLIMBING if name not in ("con", "lpt1", "Ask-1", "a--b")])
def test_a_file_of_a_skill_stays_in_the_skills_folder(path: object) -> None:
    with pytest.raises(InvalidInput, match="linter"):
        made(SKILL | {"config": {"text": "---\n---\nx", "files": {path: "x"}}})


@pytest.mark.parametrize("files", [{"a.md": "1", "A.md": "2"}, {"skill.md": "x"}, {"SKILL.md": "x"}, {"a/con.md": "x"}])
def test_two_files_that_differ_only_in_case_are_one_too_many(files: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="linter"):
        made(SKILL | {"config": {"text": "---\n---\nx", "files": files}})


def test_an_update_replaces_the_config_and_keeps_the_kind() -> None:
    tree = made(RULE).apply([{"op": "update", "id": "ask-1", "config": {"text": "other"}}])
    assert tree.entries == (Entry("ask-1", "rules", {"text": "other"}),)
    with pytest.raises(InvalidInput, match="cannot turn a rules into a 'skill'"):
        tree.apply([{"op": "update", "id": "ask-1", "kind": "skill", "config": {"text": "x"}}])


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (RULE, "there is such an entry already"),
        ({"op": "update", "id": "ask-2", "config": {"text": "x"}}, "there is no entry to update"),
        ({"op": "remove", "id": "ask-2"}, "there is no entry to remove"),
        ({"op": "rename", "id": "ask-1"}, "'rename' is not an operation"),
        (RULE | {"id": "ask-2", "kind": "loop"}, "there is no entry kind 'loop'"),
        (RULE | {"id": "ask-2", "config": {"text": "  \n"}}, "there is no text"),
        (RULE | {"id": "ask-2", "config": {"text": "a\x1b[31m"}}, "control characters"),
        (RULE | {"id": "ask-2", "config": {"text": "x", "path": "/etc"}}, "has no 'path'"),
        (RULE | {"id": "ask-2", "config": "text"}, "not an object"),
        ({"op": "create", "id": "a", "kind": "config", "config": {"target": "b", "data": {}}}, "target"),
        ({"op": "create", "id": "a", "kind": "config", "config": {"data": {"x": float("nan")}}}, "not JSON"),
        ({"op": "create", "id": "a", "kind": "code_extension", "config": {"text": "x", "ext": "../ts"}}, "extension"),
    ],
)
def test_a_mutation_that_makes_no_sense_is_refused_with_the_reason(mutation: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        made(RULE).apply([mutation])


def test_entries_are_ordered_by_id_and_an_id_is_there_once() -> None:
    tree = Tree([Entry("b", "rules", {"text": "2"}), Entry("a", "rules", {"text": "1"})])
    assert [entry.id for entry in tree.entries] == ["a", "b"]
    with pytest.raises(InvalidInput, match="two entries"):
        Tree([*tree.entries, Entry("a", "agent_command", {"text": "x"})])


def test_the_changes_between_two_trees_are_what_was_made_changed_and_taken_away() -> None:
    before = made(RULE, SKILL)
    after = before.apply(
        [
            {"op": "remove", "id": "ask-1"},
            {"op": "update", "id": "linter", "config": {"text": "---\n---\nother"}},
            {"op": "create", "id": "new", "kind": "rules", "config": {"text": "new"}},
        ]
    )
    assert [(change.op, change.entry.id) for change in before.changes(after)] == [
        ("remove", "ask-1"),
        ("update", "linter"),
        ("create", "new"),
    ]
    assert before.changes(before) == []
    assert Change("remove", before.entries[0], None).entry == before.entries[0]


def test_a_path_of_a_version_names_its_entry() -> None:
    named = {
        "harness/rules/tests.md": ("rules", "tests"),
        "harness/skills/release/steps/list.md": ("skill", "release"),
        "harness/extensions/notify.ts": ("code_extension", "notify"),
        "weights/a.bin": None,
        "harness/unknown/a.md": None,
    }
    assert {path: entry_of(path) for path in named} == named
