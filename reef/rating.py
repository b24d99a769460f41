"""One word of feedback on one answer, as `reef good` and the `+` of the TUI give it.

An answer that is rated already is rated once all the same: the rating is revised, so that the last word counts and the
earlier ones stay readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reef.client import Client, in_session
from reef.ids import new_id


@dataclass(frozen=True)
class Rated:
    """What became of a rating."""

    report: str
    revision: int | None
    """Number of the revision that it is; None for a report of its own."""
    earlier: dict[str, Any] | None
    """The report as it was before, None for the first rating of the answer."""
    changed: bool
    """False when the answer was rated like this already."""
    reply: dict[str, Any]


def rate(client: Client, scenario: str, receipt: str, score: float, note: str = "", id: str | None = None) -> Rated:
    """Rate the record `receipt`; `id` makes a retry of the first rating safe. Raises what the client does."""
    earlier = rating_of(client, receipt)
    if earlier is None:
        body: dict[str, Any] = {"score": score, "references": [receipt], "agent_record_id": id or new_id()}
        if note:
            body["feedback"] = note
        reply = client.report(scenario, body)
        return Rated(reply["agent_record_id"], None, None, True, reply)
    same = earlier["score"] == score and (not note or note == earlier["feedback"])
    # What was said of the other rating does not fit to this one.
    changes = {"score": score} if same else {"score": score, "feedback": note or None}
    reply = client.revise_report(earlier["id"], changes)
    return Rated(earlier["id"], reply["revision"], earlier, not same, reply)


def rating_of(client: Client, receipt: str) -> dict[str, Any] | None:
    """The last report with a score on this record alone, of whoever asks: the person, or the agent's session."""
    found = client.reports(receipt=receipt, source="agent" if in_session() else "person")["reports"]
    for report in found:
        if report["scope"] == "receipt" and report["score"] is not None and not report["withdrawn_at"]:
            return dict(report)
    return None
