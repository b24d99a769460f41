"""Reefine: one ask in plain words, one change to the harness of a coding agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pydantic import Field

from reef.learning.context import Context
from reef.learning.proposers import model, verbatim
from reef.learning.recipe import (
    AskInput,
    Batch,
    Candidate,
    Input,
    Mutation,
    ProposalInput,
    Recipe,
    RecipeConfig,
    Sample,
    Skip,
)
from reef.text import one_line


class Reefine(Recipe):
    """The oldest ask becomes a change, written by the proposer that the settings chose; a proposal is one already."""

    class Config(RecipeConfig):
        """Keys under `recipe.config`."""

        max_tokens: int | None = Field(None, gt=0)
        """Tokens of one answer of the served model; not set: the model server decides."""

    config: Config

    def eligible(self, item: Input) -> Sample | None:
        return Sample((item.id,), item) if isinstance(item, AskInput | ProposalInput) else None

    def batch(self, samples: Sequence[Sample]) -> Batch | None:
        return Batch((samples[0],)) if samples else None

    def grow(self, batch: Batch, context: Context) -> Candidate | Skip:
        ask = batch.samples[0].source
        if isinstance(ask, ProposalInput):
            context.activity("propose", f"taking proposal #{ask.number} of an agent as it is")
            changes = [cast(Mutation, dict(change)) for change in ask.mutations]
            return Candidate(one_line(ask.reason, 120), changes, notes={"proposal": ask.number})
        assert isinstance(ask, AskInput)
        if context.proposer == "verbatim":
            return verbatim.propose(ask, context)
        return model.propose(ask, context, self.config.max_tokens)
