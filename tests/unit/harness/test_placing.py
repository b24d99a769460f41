"""From a line that an agent reads to the entry that it was rendered from."""

from __future__ import annotations

import pytest

from reef.errors import NotFound
from reef.harness.adapter import base_entries, fitting, load_adapter, render
from reef.harness.placing import place
from reef.harness.tree import Entry, Tree
from reef.paths import Paths

SKILL = "---\nname: deep\ndescription: Look deep.\n---\n\nLook.\nLook again.\n"
TREE = Tree(
    [
        Entry.parse("first", "rules", {"text": "\n\nOne.\nTwo.\n"}),
        Entry.parse("second", "rules", {"text": "One.\nThree.\n"}),
        Entry.parse("deep", "skill", {"text": SKILL, "files": {"more/notes.md": "Note.\n"}}),
    ]
)


def test_a_line_of_the_rules_is_led_to_its_rule_and_its_place_in_there(paths: Paths) -> None:
    pi = load_adapter("pi", paths)
    lines = render(TREE, pi)["AGENTS.md"].decode().splitlines()
    found = [place(TREE, pi, "AGENTS.md", number + 1) for number, line in enumerate(lines) if line]
    assert [(at.text, at.entry.id, at.path, at.line) for at in found] == [
        ("One.", "first", "harness/rules/first.md", 2),
        ("Two.", "first", "harness/rules/first.md", 3),
        ("One.", "second", "harness/rules/second.md", 0),
        ("Three.", "second", "harness/rules/second.md", 1),
    ]
    with pytest.raises(NotFound, match="belongs to no entry"):
        place(TREE, pi, "AGENTS.md", lines.index("") + 1)


def test_a_line_of_a_skill_or_of_a_file_beside_it_is_led_to_its_own_file(paths: Paths) -> None:
    pi = load_adapter("pi", paths)
    found = place(TREE, pi, "skills/deep/SKILL.md", 7)
    assert (found.text, found.path, found.line) == ("Look again.", "harness/skills/deep/SKILL.md", 6)
    beside = place(TREE, pi, "skills/deep/more/notes.md", 1)
    assert (beside.text, beside.path, beside.line) == ("Note.", "harness/skills/deep/more/notes.md", 0)


def test_what_is_not_there_is_refused_with_what_is(paths: Paths) -> None:
    pi = load_adapter("pi", paths)
    with pytest.raises(NotFound, match=r"files: AGENTS.md, skills/deep/SKILL.md"):
        place(TREE, pi, "CLAUDE.md", 1)
    with pytest.raises(NotFound, match="no line 99"):
        place(TREE, pi, "AGENTS.md", 99)


@pytest.mark.parametrize("name", ["pi", "codex", "opencode", "hermes", "native"])
def test_every_line_of_every_entry_of_every_agent_is_placed(paths: Paths, name: str) -> None:
    adapter = load_adapter(name, paths)
    tree = Tree([*TREE.entries, *base_entries(adapter).entries])
    kept, _ = fitting(tree, adapter)
    for path, body in render(kept, adapter).items():
        for number, line in enumerate(body.decode().splitlines(), 1):
            try:
                found = place(tree, adapter, path, number)
            except NotFound:
                assert path == adapter.render.rules, f"{path}:{number}"
                continue
            assert found.text == line
            if found.line is not None:
                source = found.entry.to_files()[found.path].decode().splitlines()
                assert source[found.line] == line
