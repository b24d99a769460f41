"""B53: agents want different things of a skill's front matter; each is given what it wants, and the rest is refused."""

from __future__ import annotations

import pytest

from reef.harness import frontmatter
from reef.harness.adapter import adapter_names, load_adapter, render
from reef.harness.admission import admit
from reef.harness.tree import Tree

ADAPTERS = [load_adapter(name) for name in adapter_names()]
BROKEN = '---\ndescription: "How it is\n  shipped"\n---\nCall first.\n'


def skill(text: str) -> dict[str, object]:
    return {"op": "create", "id": "shipping", "kind": "skill", "config": {"text": text}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Shipping\n\nCall first.\n", "a skill starts with front matter (name and description between '---' lines)"),
        ("---\ndescription: x\nargument-hint: [a] [b]\n---\nCall first.\n", "the front matter is not YAML (line 3)"),
    ],
    ids=["no front matter", "a bracketed unquoted hint"],
)
def test_what_one_agent_would_skip_is_refused_for_every_agent_with_the_reason(text: str, said: str) -> None:
    for adapter in ADAPTERS:
        found = admit(Tree([]), [skill(text)], adapter)
        assert not found.ok and f"shipping: {said}" in found.reasons, adapter.name


@pytest.mark.parametrize("text", ["---\ndescription: How it is shipped\n---\nCall first.\n", BROKEN])
def test_a_missing_name_is_filled_from_the_folder_and_a_broken_string_reads_as_one_line(text: str) -> None:
    for adapter in ADAPTERS:
        found = admit(Tree([]), [skill(text)], adapter)
        assert found.ok and found.tree is not None, (adapter.name, found.reasons)
        place = str(adapter.render.skill).replace("{id}", "shipping")
        read, body = frontmatter.read(render(found.tree, adapter)[place].decode())
        assert frontmatter.field(read, "description") == "How it is shipped" and body == "Call first.\n"
        if "name" in adapter.render.front_matter.get("skill", []):
            assert frontmatter.field(read, "name") == "shipping"
