"""Reach with the real pi: what it sends decides, and what it skips is found out."""

from __future__ import annotations

import json
from typing import Any

from reef.evaluation.gate import decide, evaluate
from reef.evaluation.result import Decision
from reef.harness.adapter import base_entries
from reef.harness.adapter_file import Adapter
from reef.harness.admission import admit
from reef.paths import Paths

RULE = 'when I ask you to fix a <bug>, reproduce it & "test" first'
COMMAND = "---\ndescription: greets\n---\nSay hello to $ARGUMENTS, first $1.\nThen ${2:-stop}.\n"


def create(id: str, kind: str, text: str) -> dict[str, Any]:
    return {"op": "create", "id": id, "kind": kind, "config": {"text": text}}


def update(id: str, text: str) -> dict[str, Any]:
    return {"op": "update", "id": id, "config": {"text": text}}


def skill(description: str | None, body: str = "Run it.", more: str = "") -> str:
    line = "" if description is None else f"description: {description}\n"
    return f"---\nname: linter\n{line}{more}---\n{body}\n"


FULL = [
    create("ask-1", "rules", RULE),
    create("linter", "skill", skill("\"Lint <all> & 'some' code\"")),
    create("greet", "agent_command", COMMAND),
]


def judge(paths: Paths, pi: Adapter, before: list[dict[str, Any]], change: list[dict[str, Any]]) -> Decision:
    current = base_entries(pi).apply(before)
    admission = admit(current, change, pi)
    return decide(evaluate("reach", current, admission, pi, paths, paths.steps / "coding" / "1"))


def test_a_rule_a_skill_and_a_command_reach_pi_and_the_requests_are_kept(paths: Paths, pi: Adapter) -> None:
    found = judge(paths, pi, [], FULL)
    assert found.outcome == "publish", found.reason
    for said in ("ask-1: its text absent", "greet: its expansion absent", "linter: its name, its description absent"):
        assert said in found.reason
    folder = paths.steps / "coding" / "1" / "reach"
    kept = {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
    assert sorted(kept) == ["candidate-0.json", "candidate-1.json", "current-0.json", "current-1.json"]
    system = kept["candidate-1.json"]["requests"][0]["body"]["messages"][0]["content"]
    assert RULE in system
    before = kept["current-1.json"]["requests"][0]["body"]["messages"][0]["content"]
    assert RULE not in before and "linter" not in before


def test_a_removal_must_take_away_what_was_there(paths: Paths, pi: Adapter) -> None:
    found = judge(paths, pi, FULL, [{"op": "remove", "id": item["id"]} for item in FULL])
    assert found.outcome == "publish", found.reason
    assert "linter: its name, its description present before, absent now" in found.reason


def test_an_update_must_change_what_pi_sends(paths: Paths, pi: Adapter) -> None:
    changes = [
        update("ask-1", RULE + ", always"),
        update("linter", skill("\"Lint <all> & 'some' code\"", "Run it twice.")),
        update("greet", "Wave at $@ slowly\n"),
    ]
    found = judge(paths, pi, FULL, changes)
    assert found.outcome == "publish", found.reason
    for said in ("its text absent before", "its instructions absent before", "its expansion absent before"):
        assert said in found.reason


def test_a_skill_that_pi_skips_is_rejected_by_reach(paths: Paths, pi: Adapter) -> None:
    changes = [
        create("bare", "skill", "---\nname: bare\n---\nRun it.\n"),
        create("empty", "skill", "---\ndescription: ''\n---\nRun it.\n"),
        create("hidden", "skill", "---\ndescription: lint\ndisable-model-invocation: true\n---\nRun it.\n"),
    ]
    found = judge(paths, pi, [], changes)
    assert found.outcome == "reject"
    assert found.reason.partition(" (loopback")[0].partition(" (network")[0] == (
        "reach: bare: its name is not in what pi sends (its front matter has no description); "
        "empty: its name is not in what pi sends (its front matter has no description); "
        "hidden: its name is not in what pi sends (the agent skips the skill)"
    )


def test_a_change_that_pi_does_not_notice_is_no_change(paths: Paths, pi: Adapter) -> None:
    changes = [
        create("ask-2", "rules", RULE[8:40]),
        update("linter", skill("\"Lint <all> & 'some' code\"", more="license: mit\n")),
    ]
    found = judge(paths, pi, FULL, changes)
    assert found.outcome == "reject"
    assert "ask-2: no change: its text is already in what pi sends" in found.reason
    assert "linter: no change: pi sends the same with it and without it" in found.reason


def test_a_setting_that_no_request_shows_must_let_pi_start_and_end(paths: Paths, pi: Adapter) -> None:
    change = {
        "op": "create",
        "id": "settings",
        "kind": "config",
        "config": {"data": {"compaction": {"enabled": False}}},
    }
    found = judge(paths, pi, [], [change])
    assert found.outcome == "publish" and "no request shows a config" in found.reason
