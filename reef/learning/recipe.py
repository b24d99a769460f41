"""The recipe protocol: everything that a `recipe.py` may name.

A recipe is one class in `recipes/<name>/recipe.py`, plain synchronous code, loaded by path in a process of its own:

    class Reefine(Recipe):
        class Config(RecipeConfig): ...               its own keys, `recipe.config.*` of the settings
        def eligible(self, item) -> Sample | None     which inputs count
        def batch(self, samples) -> Batch | None      what one step takes
        def grow(self, batch, context) -> Candidate | Skip
        def evaluate(self, candidate, context)        optional: other checks than the policy's
        def decide(self, evaluation, context)         optional: another rule than the policy's

It reaches models, the tree and the journal through `context` and writes nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypedDict

from pydantic import BaseModel, ConfigDict

from reef.errors import Refused

if TYPE_CHECKING:
    from reef.evaluation.result import Decision, Evaluation
    from reef.learning.context import Context


class Mutation(TypedDict, total=False):
    """One change to the harness tree."""

    op: Literal["create", "update", "remove"]
    id: str
    kind: str
    config: dict[str, Any]


@dataclass(frozen=True)
class AskInput:
    """A change request in plain words. Untrusted text, like everything that a person or program sent."""

    id: str
    number: int
    text: str
    session: str | None = None
    release_id: str | None = None
    """Release that the asker had installed."""
    requires: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class ReportInput:
    """Feedback on receipts."""

    id: str
    score: float | None
    feedback: Any
    references: Sequence[str]
    metadata: Mapping[str, Any]
    source: str
    """`person`, `program` or `agent`."""


@dataclass(frozen=True)
class ProposalInput:
    """A change that an agent wrote itself, in a session. It has been admitted once, and is judged like any other."""

    id: str
    number: int
    reason: str
    """Why, in the agent's words: untrusted text."""
    mutations: Sequence[Mapping[str, Any]]
    session: str | None = None
    release_id: str | None = None


Input: TypeAlias = AskInput | ReportInput | ProposalInput


@dataclass(frozen=True)
class Sample:
    """One eligible input, with what the recipe made of it."""

    inputs: tuple[str, ...]
    """Ids that are consumed with it."""
    source: Input
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """What one step takes."""

    samples: tuple[Sample, ...]
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> list[str]:
        """Ids of everything that the step consumes, each once, in order."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.inputs))


@dataclass(frozen=True)
class Candidate:
    """What a step made, before anybody judged it."""

    summary: str
    """One line for the version list."""
    mutations: Sequence[Mutation] = ()
    requires: Sequence[Mapping[str, Any]] = ()
    """What the person must provide before it is installed: `{"name", "kind", "check"?, "prompt"?}`."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    state: Any = None
    """JSON value that the recipe finds again in `context.state` of the next step."""


@dataclass(frozen=True)
class Skip:
    """A step that made nothing, on purpose."""

    reason: str
    """One sentence for the person."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None


class RecipeConfig(BaseModel):
    """Base of a recipe's own keys. Hyphen and underscore are the same; an unknown key is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True
    )


class Recipe:
    """Base of all recipes: takes nothing and changes nothing."""

    Config: ClassVar[type[RecipeConfig]] = RecipeConfig

    def __init__(self, config: RecipeConfig) -> None:
        self.config = config

    def eligible(self, item: Input) -> Sample | None:
        """The sample that an input becomes, or None when this recipe does not take it."""
        return None

    def batch(self, samples: Sequence[Sample]) -> Batch | None:
        """What one step takes of the samples, oldest first; None while there is not enough."""
        return None

    def grow(self, batch: Batch, context: Context) -> Candidate | Skip:
        """Make a candidate of a batch. Errors end the step as failed, with their sentence."""
        raise Refused("this recipe makes no candidates", "reef recipes list")

    def evaluate(self, candidate: Candidate, context: Context) -> Evaluation | None:
        """Checks of the recipe's own; None leaves them to the scenario's policy."""
        return None

    def decide(self, evaluation: Evaluation, context: Context) -> Decision | None:
        """A rule of the recipe's own; None leaves it to the scenario's policy."""
        return None
