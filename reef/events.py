"""The names of everything that happens, and the shape of one event.

The `events` table is the only source of `/reef/events`, of the live views and of `--follow`. An event carries ids and
states, never text: whoever wants the text asks for the thing by its id, with the key that this needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RECORD_OPENED = "record_opened"
RECORD_SETTLED = "record_settled"
REPORT_STORED = "report_stored"
REPORT_REVISED = "report_revised"
REPORT_WITHDRAWN = "report_withdrawn"
SESSION_OPENED = "session_opened"
SESSION_CLOSED = "session_closed"
SCENARIO_CREATED = "scenario_created"
SCENARIO_ARCHIVED = "scenario_archived"
SCENARIO_RESTORED = "scenario_restored"
ASK_QUEUED = "ask_queued"
ASK_CHANGED = "ask_changed"
STEP_STARTED = "step_started"
STEP_ACTIVITY = "step_activity"
STEP_ENDED = "step_ended"
VERSION_PUBLISHED = "version_published"
VERSION_PENDING = "version_pending"
HEAD_MOVED = "head_moved"
VERSION_PINNED = "version_pinned"
VERSION_UNPINNED = "version_unpinned"
HARNESS_INSTALLED = "harness_installed"
HARNESS_REMOVED = "harness_removed"
AGENT_INSTALLED = "agent_installed"
ENGINE_CHANGED = "engine_changed"
RECORDING_LOST = "recording_lost"
RECORDS_FORGOTTEN = "records_forgotten"
RECORDS_PRUNED = "records_pruned"

KINDS = frozenset(value for name, value in dict(globals()).items() if name.isupper() and isinstance(value, str))


@dataclass(frozen=True)
class Event:
    """One row of the `events` table."""

    sequence: int
    at: str
    """RFC 3339, UTC."""
    kind: str
    """One of `KINDS`."""
    scenario: str | None
    ids: dict[str, Any] = field(default_factory=dict)
    """Ids and numbers only: `{"record": …}`, `{"ask": …, "number": 3}`, `{"step": 4}`."""
    state: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that `/reef/events` sends as `data:`."""
        return {
            "sequence": self.sequence,
            "at": self.at,
            "kind": self.kind,
            "scenario": self.scenario,
            "ids": self.ids,
            "state": self.state,
        }
