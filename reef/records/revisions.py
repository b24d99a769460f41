"""A change of mind about a report: the last value counts, the earlier ones stay readable, the last step can be undone.

The row of a report holds what counts now, so that whatever adds reports up needs to know nothing of revisions. With the
first revision the value that was reported becomes number 0 of its history. A retry of the report itself is still the
same report: its id stands for what was reported first.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from reef import events
from reef.errors import Conflict, InvalidInput, NotFound
from reef.ids import utc_now
from reef.records import reports
from reef.records.reports import Row, Source
from reef.records.rows import add_event

_FIELDS = ("score", "feedback", "metadata")


def revise_report(
    conn: sqlite3.Connection, report: str, changes: object, source: Source, session: str | None = None
) -> tuple[Row, int]:
    """Change what a report says; returns its row and the number of the revision that counts now.

    Of `changes`, the parsed request, `score`, `feedback` and `metadata` are read, by the rules of a report; null takes
    one away, what is not named stays. `source` and `session` say who asks. Raises what `reports.changeable` does,
    InvalidInput, and Conflict for a report that was taken back.
    """
    if not isinstance(changes, dict):
        raise InvalidInput("a revision must be a JSON object")
    if changes.get("references") is not None:
        raise InvalidInput("a revision changes no 'references': what a report is on stays", "reef undo")
    if not any(name in changes for name in _FIELDS):
        raise InvalidInput("a revision needs a score, feedback or metadata", 'use {"score": 0}')
    found = reports.changeable(conn, report, source, session)
    if found["withdrawn_at"] is not None:
        raise Conflict(f"report {report} was taken back, it cannot be revised", f"reef reports show {report}")
    before = {name: found[name] for name in _FIELDS}
    after = reports.checked(before | {name: changes[name] for name in _FIELDS if name in changes})
    if reports.canonical(after) == reports.canonical(before):
        return found, _last(conn, found)
    if not _last(conn, found, undone=True):
        _keep(conn, found["sequence"], 0, found["source"], before, found["created_at"])
    number, now = _last(conn, found, undone=True) + 1, utc_now()
    _keep(conn, found["sequence"], number, source, after, now)
    _set(conn, found["sequence"], after, now)
    add_event(conn, events.REPORT_REVISED, found["scenario"], _ids(found, number), source)
    return reports.report_row(conn, report), number


def undo_revision(
    conn: sqlite3.Connection, report: str, number: int, source: Source, session: str | None = None
) -> Row:
    """Have the value before revision `number` count again. The revision stays readable; twice is once.

    Raises what `reports.changeable` does, NotFound for a revision that is not there, and Conflict for one that is not
    the last.
    """
    found = reports.changeable(conn, report, source, session)
    known = {row["number"]: row for row in found["revisions"]}
    if number < 1 or number not in known:
        raise NotFound(f"report {report} has no revision {number}", f"reef reports show {report}")
    if known[number]["undone_at"] is not None:
        return found
    if number != _last(conn, found):
        raise Conflict(f"revision {number} of report {report} is not its last one", f"reef reports show {report}")
    earlier = max((n for n, row in known.items() if n < number and row["undone_at"] is None))
    conn.execute(
        "UPDATE report_revisions SET undone_at = ? WHERE report = ? AND number = ?",
        (utc_now(), found["sequence"], number),
    )
    before = known[earlier]
    _set(conn, found["sequence"], {name: before[name] for name in _FIELDS}, before["at"] if earlier else None)
    add_event(conn, events.REPORT_REVISED, found["scenario"], _ids(found, number), "undone")
    return reports.report_row(conn, report)


def _last(conn: sqlite3.Connection, report: Row, undone: bool = False) -> int:
    """The number of the revision that counts now, with `undone` of the last one there was; 0 without any."""
    row = conn.execute(
        "SELECT coalesce(max(number), 0) FROM report_revisions WHERE report = ? AND (? OR undone_at IS NULL)",
        (report["sequence"], undone),
    ).fetchone()
    return int(row[0])


def _keep(conn: sqlite3.Connection, report: int, number: int, source: str, said: dict[str, Any], at: str) -> None:
    conn.execute(
        "INSERT INTO report_revisions (report, number, source, score, feedback_json, metadata_json, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (report, number, source, *reports.columns(said), at),
    )


def _set(conn: sqlite3.Connection, report: int, said: dict[str, Any], at: str | None) -> None:
    conn.execute(
        "UPDATE reports SET score = ?, feedback_json = ?, metadata_json = ?, revised_at = ? WHERE sequence = ?",
        (*reports.columns(said), at, report),
    )


def _ids(report: Row, number: int) -> dict[str, Any]:
    return {"report": report["id"], "records": report["references"][:32], "revision": number}
