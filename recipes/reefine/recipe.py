"""Reefine: one ask in plain words, one change to the harness of a coding agent."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from reef.learning.context import Context
from reef.learning.proposers import model, verbatim
from reef.learning.recipe import AskInput, Batch, Candidate, Input, Recipe, RecipeConfig, Sample, Skip


class Reefine(Recipe):
    """The oldest ask becomes a change, written by the proposer that the settings chose."""

    class Config(RecipeConfig):
        """Keys under `recipe.config`."""

        max_tokens: int | None = Field(None, gt=0)
        """Tokens of one answer of the served model; not set: the model server decides."""

    config: Config

    def eligible(self, item: Input) -> Sample | None:
        return Sample((item.id,), item) if isinstance(item, AskInput) else None

    def batch(self, samples: Sequence[Sample]) -> Batch | None:
        return Batch((samples[0],)) if samples else None

    def grow(self, batch: Batch, context: Context) -> Candidate | Skip:
        ask = batch.samples[0].source
        assert isinstance(ask, AskInput)
        if context.proposer == "verbatim":
            return verbatim.propose(ask, context)
        return model.propose(ask, context, self.config.max_tokens)
