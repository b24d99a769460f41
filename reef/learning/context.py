"""What a recipe is given besides its batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reef.harness.adapter_file import Adapter
from reef.harness.tree import Tree
from reef.learning.models import Budget, Models
from reef.paths import Paths

if TYPE_CHECKING:
    from reef.records.reader import Reader


@dataclass(frozen=True)
class Rejected:
    """A change that was made before and refused."""

    step: int
    summary: str
    reason: str
    mutations: Sequence[Mapping[str, Any]]
    ran: bool = False
    """Whether checks ran on it, instead of admission refusing it at once."""


@dataclass(frozen=True)
class Context:
    """One step's surroundings."""

    scenario: str
    step: int
    models: Models
    tree: Tree
    """The harness that is served now."""
    adapter: Adapter
    proposer: str
    """`model` or `verbatim`: who writes a harness change."""
    proposer_why: str
    """Why that one, when the settings left it open; else empty."""
    policy: str
    budget: Budget
    rejected: Sequence[Rejected]
    """Refused changes of this scenario, oldest first, at most 25."""
    state: Any
    """JSON value that the recipe left with its last step; None at first."""
    reader: Reader
    folder: Path
    """The step's own folder."""
    paths: Paths
    say: Callable[[str, str, bool], None]
    """Tell the person what happens: kind, one sentence, whether it failed."""

    def activity(self, kind: str, text: str, failed: bool = False) -> None:
        """One line of the step's live activity."""
        self.say(kind, text, failed)
