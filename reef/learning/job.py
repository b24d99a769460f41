"""What the daemon hands to a step's process: one JSON object on its standard input, token included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from reef.learning.context import Rejected
from reef.learning.recipe import AskInput, ProposalInput


class Job(BaseModel):
    """One step's task."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    scenario: str
    step: int
    recipe: str
    config: dict[str, Any]
    """The recipe's own keys."""
    adapter: str
    asks: list[AskInput]
    proposals: list[ProposalInput] = []
    tree: list[dict[str, Any]]
    """Entries that are served now, as `Tree.to_json` has them."""
    proposer: str
    proposer_why: str = ""
    policy: str
    rejected: list[Rejected] = []
    state: Any = None
    url: str
    """Address of the daemon."""
    token: str
    """Opens model calls of this scenario while the step runs, and nothing else."""
    model: str | None = None
    count_agent_reports: bool = False
    """Whether what agents report is feedback like a person's."""
    max_calls: int = 8
    model_timeout_s: float = 600
    database: Path
    folder: Path
    """The step's own folder; it exists."""
