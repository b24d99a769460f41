"""The harness as plain files that work without reef."""

from __future__ import annotations

from reef.harness.carry_away import plain_files
from reef.harness.tree import Tree

TREE = Tree.from_files(
    {
        "harness/rules/a.md": b"First.\n",
        "harness/rules/b.md": b"Second.\n",
        "harness/rules/reef-notice.md": b"reef's own\n",
        "harness/skills/release/SKILL.md": b"---\nname: release\n---\nTag.\n",
        "harness/skills/release/steps/one.md": b"One.\n",
        "harness/commands/ship.md": b"Ship it.\n",
        "harness/config/settings.json": b"{}\n",
    }
)


def test_skills_are_folders_as_every_agent_reads_them_and_the_rest_is_named() -> None:
    files, left_out = plain_files(TREE, "skills")
    assert sorted(files) == ["release/SKILL.md", "release/steps/one.md"]
    assert [line.partition(":")[0] for line in left_out] == [
        "rules a", "rules b", "rules reef-notice", "config settings", "agent_command ship",
    ]  # fmt: skip


def test_one_agents_md_has_every_rule_in_order_and_the_skills_beside_it() -> None:
    files, left_out = plain_files(TREE, "agents-md")
    assert files["AGENTS.md"] == b"First.\n\nSecond.\n"
    assert files[".agents/skills/release/steps/one.md"] == b"One.\n"
    assert not any(line.startswith(("rules a", "rules b")) for line in left_out)
    assert "rules reef-notice: reef's own, of no use without it" in left_out


def test_a_tree_without_rules_makes_no_agents_md() -> None:
    files, left_out = plain_files(Tree(), "agents-md")
    assert (files, left_out) == ({}, [])
