"""Changes that must not be published: pi would skip them, they change nothing, or they are code."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.e2e.home import Home

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

RULE = "Always say which file you changed."


def proposal(**entry: Any) -> str:
    """An ask that makes the scripted model propose exactly this entry."""
    return f"[[propose {json.dumps({'entries': [entry], 'summary': 'scripted'})}]]"


def ask(home: Home, text: str) -> dict[str, Any]:
    """Make an ask, wait, and return the row of its step."""
    home.sh(f"reef ask {shlex.quote(text)} --wait -s coding")
    steps: list[dict[str, Any]] = home.json("reef steps list -s coding")
    return max(steps, key=lambda step: int(step["number"]))


@pytest.fixture
def coding(home: Home) -> Home:
    """A home whose scenario `coding` has one rule, as v2."""
    url, _ = home.fake_upstream()
    home.ok(f"reef up --recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok("reef scenarios create coding")
    made = ask(home, proposal(op="create", id="say-file", kind="rules", text=RULE))
    assert made["state"] == "published", made
    return home


def head(home: Home) -> int:
    """The number of the version that is served."""
    (found,) = [row["version"] for row in home.json("reef versions list -s coding") if row["current"]]
    return int(found)


def test_a_skill_that_pi_skips_is_rejected(coding: Home) -> None:
    text = "---\nname: another-name\ndescription: Writes release notes.\n---\nWrite them.\n"
    step = ask(coding, proposal(op="create", id="release-notes", kind="skill", text=text))
    assert step["state"] == "rejected", step
    assert "another-name" in step["reason"] or "name" in step["reason"]
    assert head(coding) == 2


def test_a_rule_that_is_there_already_is_rejected_as_no_change(coding: Home) -> None:
    step = ask(coding, proposal(op="update", id="say-file", kind="rules", text=RULE))
    assert step["state"] == "rejected", step
    assert "no change" in step["reason"]
    assert head(coding) == 2


def test_a_rule_whose_text_is_in_the_tree_under_another_name_is_rejected(coding: Home) -> None:
    step = ask(coding, proposal(op="create", id="say-file-again", kind="rules", text=RULE))
    assert step["state"] == "rejected", step
    assert step["reason"]
    assert head(coding) == 2


def test_code_is_refused_because_it_needs_the_sandbox(coding: Home) -> None:
    step = ask(coding, proposal(op="create", id="notify", kind="code_extension", text="export default () => {}"))
    assert step["state"] in ("rejected", "skipped"), step
    assert "needs the sandbox" in step["reason"]
    assert head(coding) == 2
