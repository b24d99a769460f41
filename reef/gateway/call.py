"""Who makes a call and what it belongs to, as the daemon has resolved it before the gateway sees it."""

from __future__ import annotations

from dataclasses import dataclass

from reef.records.calls import Source


@dataclass(frozen=True, slots=True)
class Call:
    """Everything about a call that its body does not say."""

    scenario: str
    source: Source = "program"
    session: str | None = None
    """Key of the session whose token the call carries; it goes before every key that a client names itself."""
    adapter: str | None = None
    version: int | None = None
    """Version that the caller has installed, or that the scenario serves."""
    release_id: str | None = None
    """Head of the scenario, for `x-reef-release-id`."""
    rules: dict[str, int] | None = None
    """`bytes` of the rules that the agent was given, and the `cap` of what it reads of them; None where unknown."""
    side_call: bool = False
    """Known not to be a turn of the conversation."""
    unrecorded: str | None = None
    """Why there can be no record of it; the call is answered all the same."""
