"""Reach when the agent misbehaves: who is blamed, and what is said. The agent here is a stand-in of a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reef.evaluation import reach as module
from reef.evaluation.reach import reach
from reef.evaluation.result import Group
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.tree import Entry, Tree
from reef.paths import Paths
from tests.fakes.agent_place import place_fake_agent


@pytest.fixture
def pi(paths: Paths) -> Adapter:
    adapter = load_adapter("pi", paths)
    place_fake_agent(adapter, paths)
    return adapter


def tree(*rules: str) -> Tree:
    return Tree(Entry.parse(f"rule-{at}", "rules", {"text": text}) for at, text in enumerate(rules))


def judged(paths: Paths, pi: Adapter, before: Tree, after: Tree, folder: Path | None = None) -> Group:
    return reach(before, after, pi, paths, folder)


def test_a_rule_that_arrives_passes_and_both_requests_are_kept(paths: Paths, pi: Adapter) -> None:
    told: list[tuple[str, str, bool]] = []
    folder = paths.steps / "coding" / "1"
    found = reach(tree(), tree("be brief"), pi, paths, folder, lambda *what: told.append(what))
    assert (found.status, found.detail.partition(" (")[0]) == ("pass", "rule-0: its text absent before, present now")
    assert [check["what"] for check in found.checks] == ["create rules"]
    kept = {side: json.loads((folder / "reach" / f"{side}-0.json").read_text()) for side in ("current", "candidate")}
    contents = {side: facts["requests"][0]["body"]["messages"][0]["content"] for side, facts in kept.items()}
    assert contents == {"current": "", "candidate": "be brief\n"}
    assert kept["current"]["prompt"] == kept["candidate"]["prompt"]
    assert [(row["side"], row["state"], row["exit_code"]) for row in found.episodes] == [
        ("current", "complete", 0),
        ("candidate", "complete", 0),
    ]
    assert told[0][1].startswith("running pi on both trees (") and told[-1][0] == "reach"


def test_a_candidate_on_which_the_agent_fails_is_blamed(paths: Paths, pi: Adapter) -> None:
    found = judged(paths, pi, tree(), tree("[[crash]]"))
    assert (found.status, found.detail) == (
        "fail",
        "on the candidate pi ended with status 3: the rules made me crash",
    )
    assert [row["state"] for row in found.episodes] == ["complete", "failed"]


def test_an_agent_that_fails_on_the_current_tree_blames_nobody(paths: Paths, pi: Adapter) -> None:
    found = judged(paths, pi, tree("[[crash]]"), tree("[[crash]]", "be brief"))
    assert (found.status, found.detail) == (
        "invalid",
        "on the current tree pi ended with status 3: the rules made me crash",
    )


def test_a_run_that_asks_nothing_is_no_clean_run(paths: Paths, pi: Adapter) -> None:
    found = judged(paths, pi, tree(), tree("[[silent]]"))
    assert (found.status, found.detail) == ("fail", "on the candidate pi sent no request")


def test_a_run_that_does_not_end_is_ended(paths: Paths, pi: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUN_S", 2.0)
    found = judged(paths, pi, tree(), tree("[[hang]]"))
    assert (found.status, found.detail) == ("fail", "on the candidate pi did not end within 2 s")


def test_a_kind_that_the_agent_skips_is_said_to_be_missing(paths: Paths, pi: Adapter) -> None:
    # The stand-in reads rules and nothing else.
    skill = Tree([Entry.parse("linter", "skill", {"text": "---\nname: linter\ndescription: lint\n---\nx"})])
    found = judged(paths, pi, tree(), skill)
    assert found.status == "fail"
    assert found.detail.startswith("linter: its name is not in what pi sends (the agent skips the skill)")


def test_an_agent_that_cannot_be_installed_makes_the_check_invalid(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    for name, script in (("node", 'echo "$0"; echo v24.0.0'), ("npm", "echo 'npm error code ENOTFOUND' >&2; exit 1")):
        (machine / name).write_text(f"#!/bin/sh\n{script}\n")
        (machine / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{machine}:/usr/bin:/bin")
    found = judged(paths, load_adapter("pi", paths), tree(), tree("be brief"))
    assert found.status == "invalid"
    assert "pi 1.6.0 cannot be installed: the package registry does not answer" in found.detail


def test_a_run_without_a_seal_goes_on_and_says_so(
    paths: Paths, pi: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    (tmp_path / "first" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:/usr/bin:/bin")
    found = judged(paths, pi, tree(), tree("be brief"))
    assert found.status == "pass"
    assert found.detail.endswith("(network open (bubblewrap is refused: bwrap: setting up uid map: Permission denied))")
    assert found.episodes[0]["detail"]["network"].startswith("network open")
