"""Records and reports from elsewhere: stored as they are, all of a batch or nothing, and once however often they come.

An imported record says so (`origin`), has no version of this home, and holds nothing that was not in what came: no
tokens are made up for it. Whether an id is the same record again is judged by the hashes of its bodies, which stay when
the bodies have been pruned.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from reef import events
from reef.credentials import clean
from reef.errors import Conflict, InvalidInput, ReefError
from reef.ids import is_id, new_id, to_blob
from reef.records import reports, rows
from reef.records.calls import Body, OpenRecord, Settlement, store_records

IMPORTED = "import"
ID_CHARACTERS = 256
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


@dataclass
class ImportedCall:
    """A call that came in an envelope, its bodies already cut and hashed."""

    sent_id: str
    """The id as it was sent; `call.receipt` is the one made of it."""
    call: OpenRecord
    end: Settlement
    origin: str = IMPORTED
    redactions: int = 0
    """What had been cut out before it came here."""
    gone: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Size and hash of a `request` or `response` that was pruned where the call comes from."""
    pruned_at: str | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes received of `request` and `response`, where something had been cut out of them."""
    cwd: str | None = None
    title: str | None = None


@dataclass
class ImportedReport:
    """A report that came in an envelope."""

    sent_id: str
    body: dict[str, Any]
    """As in `POST /reef/report`, with the ids of this home."""
    source: reports.Source
    session: str | None = None
    created_at: str | None = None
    withdrawn_at: str | None = None
    revised_at: str | None = None
    revisions: list[dict[str, Any]] = field(default_factory=list)
    first: dict[str, Any] = field(default_factory=dict)
    """What it said before it was revised; empty when it never was."""


Item = ImportedCall | ImportedReport


def id_of(sent: object) -> str:
    """The id under which this home knows what came with the id `sent`.

    A UUID loses its dashes, any other text is hashed. Raises InvalidInput.
    """
    if is_id(sent):
        return str(sent)
    if not isinstance(sent, str) or not 0 < len(sent) <= ID_CHARACTERS:
        raise InvalidInput(f"agent_record_id must be a text of 1 to {ID_CHARACTERS} characters")
    if _UUID.match(sent):
        return sent.replace("-", "").lower()
    return hashlib.blake2b(sent.encode("utf-8", "surrogatepass"), digest_size=16, person=b"reef imported").hexdigest()


def store_imported(conn: sqlite3.Connection, scenario: str, items: list[Item]) -> int:
    """Store what is new of `items`, in their order, and return how many that were.

    Raises InvalidInput or Conflict, with the place in the list in front of its message; nothing is to be kept then.
    """
    stored = 0
    waiting: dict[str, ImportedCall] = {}
    for place, item in enumerate(items):
        try:
            if isinstance(item, ImportedCall):
                if not _is_known(conn, scenario, item, waiting):
                    waiting[item.call.receipt] = item
                continue
            stored += _store_calls(conn, scenario, waiting)
            stored += _store_report(conn, scenario, item)
        except ReefError as error:
            raise type(error)(f"records[{place}]: {error.message}", error.hint) from error
    return stored + _store_calls(conn, scenario, waiting)


def _is_known(conn: sqlite3.Connection, scenario: str, item: ImportedCall, waiting: dict[str, ImportedCall]) -> bool:
    """Whether the very same record is there. Raises Conflict when its id is taken by something else."""
    receipt = item.call.receipt
    earlier = waiting.get(receipt)
    if earlier is not None:
        found: tuple[Any, ...] | None = (scenario, *_hashes(earlier))
    else:
        found = conn.execute(
            "SELECT scenario, request_hash, response_hash FROM records WHERE id = ?", (to_blob(receipt),)
        ).fetchone()
    if found is None:
        if conn.execute("SELECT 1 FROM reports WHERE id = ?", (to_blob(receipt),)).fetchone() is not None:
            raise Conflict(f"the id {item.sent_id} is taken by a report", "reef records list")
        return False
    if found[0].casefold() != scenario.casefold():
        raise Conflict(f"the id {item.sent_id} is taken by a record of another scenario", "reef records list")
    if tuple(found[1:]) != _hashes(item):
        raise Conflict(f"the id {item.sent_id} is taken by a record with other content", f"reef records show {receipt}")
    return True


def _hashes(item: ImportedCall) -> tuple[bytes | None, bytes | None]:
    request, response = item.call.request, item.end.response
    found = (
        request.prepared.hash if isinstance(request, Body) else None,
        response.prepared.hash if isinstance(response, Body) else None,
    )
    gone = (item.gone.get("request"), item.gone.get("response"))
    return (found[0] or (gone[0][1] if gone[0] else None), found[1] or (gone[1][1] if gone[1] else None))


def _store_calls(conn: sqlite3.Connection, scenario: str, waiting: dict[str, ImportedCall]) -> int:
    if not waiting:
        return 0
    items = list(waiting.values())
    waiting.clear()
    for item in items:
        item.call.scenario = scenario
    store_records(conn, [(item.call, item.end) for item in items])
    _complete_rows(conn, items)
    for item in items:
        if item.call.session and (item.cwd or item.call.adapter):
            _join_session(conn, scenario, item)
    return len(items)


def _complete_rows(conn: sqlite3.Connection, items: list[ImportedCall]) -> None:
    """What imported records have besides what a call leaves."""
    conn.executemany(
        "UPDATE records SET origin = ?, pruned_at = ?, redactions = redactions + ? WHERE id = ?",
        [(item.origin, item.pruned_at, item.redactions, to_blob(item.call.receipt)) for item in items],
    )
    for item in items:
        changes: dict[str, Any] = {}
        for name, (size, digest) in item.gone.items():
            changes |= {f"{name}_bytes": size, f"{name}_hash": digest}
        changes |= {f"{name}_bytes": size for name, size in item.sizes.items()}
        if changes:
            columns = ", ".join(f"{name} = ?" for name in changes)
            conn.execute(f"UPDATE records SET {columns} WHERE id = ?", (*changes.values(), to_blob(item.call.receipt)))


def _join_session(conn: sqlite3.Connection, scenario: str, item: ImportedCall) -> None:
    """Have the session of the call in the list of sessions, over since its last call."""
    call = item.call
    key = clean(call.session or "")
    known = conn.execute(
        "SELECT sequence FROM sessions WHERE key = ? AND scenario = ? COLLATE NOCASE", (key, scenario)
    ).fetchone()
    if known is None:
        rows.open_session(
            conn, scenario, new_id(), key=key, adapter=call.adapter, cwd=item.cwd, title=item.title,
            opened_at=call.started_at, closed_at=call.started_at,
        )  # fmt: skip
        return
    conn.execute(
        "UPDATE sessions SET closed_at = max(closed_at, ?), opened_at = min(opened_at, ?)"
        " WHERE sequence = ? AND token_hash IS NULL AND closed_at IS NOT NULL",
        (call.started_at, call.started_at, known[0]),
    )


def _store_report(conn: sqlite3.Connection, scenario: str, item: ImportedReport) -> int:
    """Whether the report is new, as a number."""
    # Stored as it was first said, so that the same report is found again, and then revised as it was.
    row, new = reports.store_report(conn, scenario, item.body | item.first, item.source, item.session)
    if not new:
        return 0
    said = reports.checked(item.body)
    conn.execute(
        "UPDATE reports SET created_at = ?, withdrawn_at = ?, revised_at = ?, score = ?, feedback_json = ?,"
        " metadata_json = ? WHERE id = ?",
        (
            item.created_at or row["created_at"], item.withdrawn_at, item.revised_at, *reports.columns(said),
            to_blob(row["id"]),
        ),
    )  # fmt: skip
    sequence = row["sequence"]
    conn.executemany(
        "INSERT INTO report_revisions (report, number, source, score, feedback_json, metadata_json, at, undone_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (sequence, one["number"], one["source"], *reports.columns(reports.checked(one)), one["at"],
             one.get("undone_at"))
            for one in item.revisions
        ],
    )  # fmt: skip
    if item.withdrawn_at is not None:
        rows.add_event(conn, events.REPORT_WITHDRAWN, scenario, {"report": row["id"]})
    return 1
