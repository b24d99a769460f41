"""The proposer `model`: one chat call to the served model, one more with the reason when its answer is refused."""

from __future__ import annotations

from reef.learning.context import Context
from reef.learning.proposers import prompt, reply
from reef.learning.proposers.reply import ReplyRefused
from reef.learning.recipe import AskInput, Candidate, Skip

TRIES = 2


def propose(ask: AskInput, context: Context, max_tokens: int | None = None) -> Candidate | Skip:
    """Ask the served model for the entries that make the agent do what `ask` says.

    `max_tokens` bounds one answer; None leaves it to the model server. Returns Skip with the reason when no answer can
    be used. Raises UpstreamFailed when the model does not answer at all.
    """
    messages = prompt.messages(ask.text, context.tree, context.adapter, context.rejected)
    receipts: list[str | None] = []
    refusals: list[str] = []
    for attempt in range(1, TRIES + 1):
        context.activity("propose", "asking the served model for a change" if attempt == 1 else "asking once more")
        answered = context.models.served.chat(messages, max_tokens=max_tokens)
        receipts.append(answered.receipt)
        notes = {"proposer": "model", "receipts": receipts, "refusals": refusals}
        try:
            answer = reply.read(answered)
        except ReplyRefused as error:
            refusals.append(error.message)
            context.activity("propose", f"the answer was refused: {error.message}", True)
            messages = [
                *messages,
                {"role": "assistant", "content": answered.text or "(empty)"},
                {"role": "user", "content": prompt.retry(error.message)},
            ]
            continue
        if not answer.mutations:
            return Skip(f"the model proposed no change: {answer.summary or 'no reason given'}", notes)
        count = len(answer.mutations)
        context.activity("propose", f"proposed {count} {'entry' if count == 1 else 'entries'}: {answer.summary}")
        return Candidate(answer.summary or f"ask {ask.number}", answer.mutations, requires=ask.requires, notes=notes)
    return Skip(
        f"the model's answer was refused: {refusals[-1]}",
        {"proposer": "model", "receipts": receipts, "refusals": refusals},
    )
