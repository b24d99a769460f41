"""Which records a list or a search goes through: the one place that makes the condition, for HTTP, CLI and screens."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reef.credentials import clean
from reef.errors import InvalidInput
from reef.ids import is_id, stamp, to_blob
from reef.records import shapes

_ESCAPE = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
_SHOWN = ("preview", "answer_preview", "model", "session", "error")
_SCORE = re.compile(r"(<=|>=|!=|<|>|=)? *([+-]?(?:\d+(?:\.\d*)?|\.\d+))\Z")
_FAILED = "records.state IN ('failed', 'interrupted')"
_CUT = "records.prompt_cut = 1"

# The index finds where to begin, so that the rest can be read in order of sequence. An imported call may be older than
# its neighbours.
_SINCE = """records.sequence >= coalesce((SELECT min(sequence) FROM records INDEXED BY records_by_time
 WHERE started_at >= ?), 9223372036854775807) AND +records.started_at >= ?"""


@dataclass(frozen=True)
class Filter:
    """What is asked of records. None and False ask nothing."""

    scenario: str | None = None
    session: str | None = None
    """A session's key or id."""
    model: str | None = None
    """The model's whole name, whatever its letters' case; with `*` at its end what it begins with."""
    score: str | None = None
    """What the person's rating must be: `1`, `<0`, `>=0.5`."""
    since: str | None = None
    """A time in RFC 3339: only calls that came then or later."""
    failed: bool = False
    """Only calls that failed or that reef's end interrupted."""
    cut: bool = False
    """Only calls whose prompt the server has likely cut."""
    text: str | None = None
    """What the list itself must hold: first lines of request and reply, model, session, error."""

    def conditions(self, conn: sqlite3.Connection) -> tuple[list[str], list[Any]]:
        """SQL conditions on `records`, and the values in them. Raises InvalidInput."""
        where: list[str] = []
        values: list[Any] = []
        # Where something rarer is asked for, its index is the way in: `+` keeps SQLite from the wider ones.
        plus = "+" if self.session is not None or self.model or self.score or self.failed or self.cut else ""
        if self.scenario is not None:
            where.append(f"{plus}records.scenario = ?")
            values.append(self.scenario)
        if self.session is not None:
            keys = session_keys(conn, self.session)
            where.append(f"records.session IN ({', '.join('?' * len(keys))})")
            values += keys
        if self.model:
            where.append(_model(self.model, values))
        if self.score:
            where.append(_score(self.score, values))
        if self.since:
            where.append(plus + _SINCE)
            values += [moment(self.since)] * 2
        where += [_FAILED] * self.failed + [_CUT] * self.cut
        if self.text:
            where.append("(" + " OR ".join(f"records.{column} LIKE ? ESCAPE '\\'" for column in _SHOWN) + ")")
            values += [f"%{self.text.translate(_ESCAPE)}%"] * len(_SHOWN)
        return where, values


def session_keys(conn: sqlite3.Connection, session: str) -> list[str]:
    """The keys under which calls of a session may be recorded, given its key or id."""
    keys = [clean(session)]
    if is_id(session):
        keys += [row[0] for row in conn.execute("SELECT key FROM sessions WHERE id = ?", (to_blob(session),))]
    return list(dict.fromkeys(keys))


def moment(since: str) -> str:
    """A time in RFC 3339 as times are stored. Raises InvalidInput."""
    try:
        return stamp(datetime.fromisoformat(since.strip().upper()))
    except (ValueError, OverflowError):
        raise InvalidInput(f"{since[:40]!r} is not a time such as 2026-01-31T12:00:00Z", "--since 2d") from None


def _model(model: str, values: list[Any]) -> str:
    if model.endswith("*"):
        values.append(model[:-1].translate(_ESCAPE) + "%")
        return "records.model LIKE ? ESCAPE '\\'"
    values.append(model)
    return "records.model = ? COLLATE NOCASE"


def _score(score: str, values: list[Any]) -> str:
    match = _SCORE.match(score.strip())
    if match is None:
        raise InvalidInput(
            f"{score[:40]!r} is not a score to look for, as 1, '<0' or '>=0.5' are", "reef records list --help"
        )
    sign, number = match[1] or "=", float(match[2])
    values += [number, number]
    # The reports find the records that may fit; the latest score, which the list shows, says which of them do.
    return (
        "records.sequence IN (SELECT report_references.record FROM reports JOIN report_references"
        f" ON report_references.report = reports.sequence WHERE reports.score {sign} ? AND reports.source = 'person'"
        f" AND reports.withdrawn_at IS NULL) AND {shapes.SCORE} {sign} ?"
    )
