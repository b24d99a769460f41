"""The outcome of an evaluation: groups of checks, each with one status and one line that says why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["pass", "fail", "invalid", "not run"]
"""`fail` blames the candidate; `invalid` means that the check itself could not be made, which blames nobody."""


@dataclass(frozen=True)
class Group:
    """One group of checks of a step."""

    name: str
    status: Status
    detail: str
    seconds: float = 0.0
    checks: list[dict[str, Any]] = field(default_factory=list)
    """One row a check: `{"entry", "what", "status", "detail"}`."""
    episodes: list[dict[str, Any]] = field(default_factory=list)
    """One row a run of the agent: `{"side", "purpose", "task", "state", "exit_code", "duration_ms", "detail"}`."""

    def to_json(self) -> dict[str, Any]:
        """`{"name", "status", "detail", "seconds", "checks"}`."""
        return {
            "name": self.name,
            "status": self.status,
            "detail": self.detail,
            "seconds": round(self.seconds, 2),
            "checks": self.checks,
        }


@dataclass(frozen=True)
class Evaluation:
    """Every group that a policy asks for, in order; a group that was not reached is `not run`."""

    policy: str
    groups: list[Group]

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """The runs of the agent that every group made."""
        return [episode for group in self.groups for episode in group.episodes]

    def to_json(self) -> dict[str, Any]:
        """What a step's row and a version's facts keep: `{"policy", "groups": [...]}`."""
        return {"policy": self.policy, "groups": [group.to_json() for group in self.groups]}


@dataclass(frozen=True)
class Decision:
    """What follows from an evaluation."""

    outcome: Literal["publish", "reject", "could_not_evaluate"]
    reason: str
    """One sentence; for `publish` what was seen."""
