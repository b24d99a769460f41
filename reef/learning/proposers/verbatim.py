"""The proposer `verbatim`: the ask becomes one rule, word for word. No model is called."""

from __future__ import annotations

from reef.learning.context import Context
from reef.learning.recipe import AskInput, Candidate
from reef.text import one_line

WHY_EMBEDDED = "the embedded model is too small to write changes, so an ask becomes a rule word for word"
WHY_CONFIGURED = "the settings say that an ask becomes a rule word for word"


def propose(ask: AskInput, context: Context) -> Candidate:
    """One new `rules` entry `ask-<number>` that holds the ask unchanged."""
    context.activity("propose", context.proposer_why or WHY_CONFIGURED)
    return Candidate(
        one_line(ask.text, 120),
        [{"op": "create", "id": f"ask-{ask.number}", "kind": "rules", "config": {"text": ask.text}}],
        requires=ask.requires,
        notes={"proposer": "verbatim"},
    )
