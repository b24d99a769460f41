"""B54: no rule is cut without a sign.

Codex holds a project's instruction files to 32,768 bytes together, cuts the last and may cut inside a character. It
does not cut the rules of its own home, which are reef's; reef's copy of its settings lifts the limit for the others.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reef.harness.adapter import load_adapter, render
from reef.harness.admission import admit
from reef.harness.binding import Served, binding, placeholders
from reef.harness.tree import Entry, Tree

CODEX = load_adapter("codex")
CUT = 32768


def rule(id: str, text: str) -> dict[str, object]:
    return {"op": "create", "id": id, "kind": "rules", "config": {"text": text}}


def limit() -> int:
    here = Path("/h")
    made = binding(CODEX, placeholders(CODEX, Served("http://h", "m"), here, here, here))
    return int(tomllib.loads(made["config.toml"].decode())["project_doc_max_bytes"])


@pytest.mark.parametrize(
    "texts",
    [
        ["g" * (CUT - 1) + "€" + "g" * 229],
        ["a" * 20000, "b" * 20000],
    ],
    ids=["a three-byte character across the limit", "two files of 20,000"],
)
def test_rules_over_codex_own_limit_are_rendered_whole_and_below_the_limit_that_reef_sets(texts: list[str]) -> None:
    entries = [Entry.parse(f"rule-{number}", "rules", {"text": text}) for number, text in enumerate(texts)]
    rendered = render(Tree(entries), CODEX)["AGENTS.md"]
    assert CUT < len(rendered) < limit()
    assert all(text in rendered.decode() for text in texts)
    # What the tree may hold at most leaves the project's own files fifteen times as much.
    assert limit() >= 16 * CODEX.limits.rules_bytes


def test_rules_over_the_limit_of_a_tree_are_refused_with_the_bytes_that_are_too_many() -> None:
    most = CODEX.limits.rules_bytes
    half = most // 2
    assert admit(Tree([]), [rule("a", "x" * half), rule("b", "y" * (half - 8))], CODEX).ok
    refused = admit(Tree([]), [rule("a", "x" * half), rule("b", "y" * (half + 10))], CODEX)
    assert not refused.ok
    assert f"more than {CODEX.title} is given" in refused.detail
