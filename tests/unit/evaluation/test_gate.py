"""What follows from the groups of an evaluation."""

from __future__ import annotations

import pytest

from reef.errors import ConfigError
from reef.evaluation.gate import decide, evaluate
from reef.evaluation.result import Evaluation, Group, Status
from reef.harness.adapter import load_adapter
from reef.harness.admission import Admission
from reef.harness.tree import Tree
from reef.paths import Paths


@pytest.mark.parametrize(
    ("statuses", "outcome", "reason"),
    [
        (["pass", "pass"], "publish", "admission: d0; reach: d1"),
        (["fail", "not run"], "reject", "admission: d0"),
        (["pass", "fail"], "reject", "reach: d1"),
        (["pass", "invalid"], "could_not_evaluate", "reach: d1"),
        (["pass", "not run"], "could_not_evaluate", "reach: d1"),
    ],
)
def test_only_a_row_of_passes_publishes(statuses: list[Status], outcome: str, reason: str) -> None:
    names = ("admission", "reach")
    groups = [Group(names[at], status, f"d{at}") for at, status in enumerate(statuses)]
    found = decide(Evaluation("reach", groups))
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_change_that_was_not_admitted_does_not_run(paths: Paths) -> None:
    refused = Admission(False, ["ask-1: no"], None)
    found = evaluate("reach", Tree(), refused, load_adapter("pi"), paths)
    assert found.to_json() == {
        "policy": "reach",
        "groups": [
            {"name": "admission", "status": "fail", "detail": "ask-1: no", "seconds": 0.0, "checks": []},
            {
                "name": "reach",
                "status": "not run",
                "detail": "the change was not admitted",
                "seconds": 0.0,
                "checks": [],
            },
        ],
    }
    assert found.episodes == []
    assert not (paths.agents).exists()


def test_an_unknown_policy_is_named_with_the_known_ones(paths: Paths) -> None:
    with pytest.raises(ConfigError, match=r"'luck' \(policies: reach\)"):
        evaluate("luck", Tree(), Admission(True, [], Tree()), load_adapter("pi"), paths)
