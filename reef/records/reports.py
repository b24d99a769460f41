"""Reports: feedback on receipts. The protocol of `POST /reef/report`, checked whole before anything is stored.

A repeated id with the same content is the same report; with other content it is refused. What a person said, what a
program measured and what an agent thinks of itself are kept apart by `source`, and what was said of one answer is kept
apart from what was said of several together.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from typing import Any, Literal

from reef import events
from reef.credentials import clean_json, redact
from reef.errors import Conflict, Forbidden, InvalidInput, NotFound
from reef.ids import from_blob, is_id, new_id, to_blob, utc_now
from reef.records.rows import add_event

Source = Literal["person", "program", "agent"]
Row = dict[str, Any]

REFERENCES_MAX = 10_000
_OWNERS = {"person": "the person's", "program": "a program's", "agent": "an agent's"}
_ON_RECORD = (
    "sequence IN (SELECT report FROM report_references JOIN records"
    " ON records.sequence = report_references.record WHERE records.id = ?)"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


def store_report(
    conn: sqlite3.Connection, scenario: str, body: object, source: Source, session: str | None = None
) -> tuple[Row, bool]:
    """Store a report and return `(row, whether it is new)`.

    `body` is the parsed request; `score`, `feedback`, `references`, `metadata` and `agent_record_id` are read from it,
    other fields dropped. The row has the keys of `report_row`. Raises InvalidInput, naming the field or the receipt,
    and Conflict when the id is taken by other content; nothing is stored then.
    """
    if not isinstance(body, dict):
        raise InvalidInput("a report must be a JSON object")
    report = _report_id(body.get("agent_record_id"))
    said = checked(body)
    references = _references(body.get("references"))
    content = canonical(said | {"references": references})
    content_hash = hashlib.blake2b(f"{scenario.casefold()}\0{content}".encode(), digest_size=16).digest()
    blob = to_blob(report)
    known = conn.execute("SELECT content_hash FROM reports WHERE id = ?", (blob,)).fetchone()
    if known is not None:
        taken = report_row(conn, report)
        if known[0] != content_hash:
            # A report is shown with the record that it is about; what another scenario holds is nobody's business here.
            about = taken["references"] if taken["scenario"].casefold() == scenario.casefold() else []
            hint = f"reef records show {about[0]}" if about else "reef report --help"
            raise Conflict(f"the id {report} is taken by a report with other content", hint)
        return taken, False
    if conn.execute("SELECT 1 FROM records WHERE id = ?", (blob,)).fetchone() is not None:
        raise Conflict(f"the id {report} is taken by a record", f"reef records show {report}")
    records = [_find(conn, scenario, receipt) for receipt in references]
    cursor = conn.execute(
        "INSERT INTO reports (id, scenario, source, session, score, feedback_json, metadata_json, content_hash,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            blob, scenario, source, session, *columns(said), content_hash, utc_now(),
        ),
    )  # fmt: skip
    conn.executemany(
        "INSERT INTO report_references (report, record) VALUES (?, ?)",
        [(cursor.lastrowid, record) for record in records],
    )
    add_event(conn, events.REPORT_STORED, scenario, {"report": report, "records": references[:32]}, source)
    return report_row(conn, report), True


def checked(body: Row) -> Row:
    """The `score`, `feedback` and `metadata` of a report as they are stored: valid, and without credentials.

    Raises InvalidInput, naming the field.
    """
    said = {
        "score": _score(body.get("score")),
        "feedback": _feedback(body.get("feedback")),
        "metadata": _metadata(body.get("metadata")),
    }
    content = canonical(said)
    # Before hashing: the same report is the same one again, whatever was cut out of it.
    return clean_json(json.loads(content)) if redact(content.encode())[1] else said


def columns(said: Row) -> tuple[float | None, str | None, str | None]:
    """What `checked` gave as `score`, `feedback_json` and `metadata_json`."""
    feedback, metadata = said["feedback"], said["metadata"]
    return (
        said["score"],
        None if feedback is None else canonical(feedback),
        None if metadata is None else canonical(metadata),
    )


def withdraw_report(
    conn: sqlite3.Connection, report: str, source: Source = "person", session: str | None = None
) -> Row:
    """Take a report back: its row stays readable and counts nowhere. Withdrawing twice is one withdrawal.

    A step that has used the report keeps its row, and the report its `consumed_by`. `source` and `session` say who
    asks. Raises what `changeable` does.
    """
    found = changeable(conn, report, source, session)
    if found["withdrawn_at"] is None:
        conn.execute("UPDATE reports SET withdrawn_at = ? WHERE id = ?", (utc_now(), to_blob(report)))
        add_event(conn, events.REPORT_WITHDRAWN, found["scenario"], {"report": report})
    return report_row(conn, report)


def changeable(conn: sqlite3.Connection, report: str, source: Source, session: str | None) -> Row:
    """The report, if whoever asks may change it: the person any, a session its own, a program a program's.

    Raises NotFound, also for a session that asks for a report of somebody else, and Forbidden.
    """
    found = report_row(conn, report)
    if session is not None and found["session"] != session:
        raise NotFound(f"there is no report {report}", "reef reports list")
    if session is None and source not in ("person", found["source"]):
        raise Forbidden(
            f"report {report} is stored as {_OWNERS[found['source']]}, and a {source} changes only its own",
            "use the reef command: reef reports list",
        )
    return found


def report_row(conn: sqlite3.Connection, report: str) -> Row:
    """A stored report.

    Keys: `id` (also as `agent_record_id`), `scenario, source, session, score, feedback, metadata, references, scope,
    created_at, consumed_by, withdrawn_at, revised_at, revisions`. `scope` is `receipt` for a report on one record,
    `session` for one on several together, `scenario` for one without any. `revisions` are the values there were, from
    the one that was reported (number 0) to the last; none for a report that was never revised. Raises NotFound.
    """
    row = conn.execute(f"SELECT {REPORT_COLUMNS} FROM reports WHERE id = ?", (to_blob(report),)).fetchone()
    if row is None:
        raise NotFound(f"there is no report {report}", "reef reports list")
    return as_report(conn, row)


def list_reports(
    conn: sqlite3.Connection,
    scenario: str | None = None,
    limit: int = 100,
    record: str | None = None,
    source: str | None = None,
    session: str | None = None,
    before: int | None = None,
    left_out: str | None = None,
    withdrawn: bool = True,
    consumed: bool = True,
) -> list[Row]:
    """Reports, newest first: of a scenario, on a record, from a source, of a session, older than a sequence.

    `left_out` is a source that is not wanted; `withdrawn` and `consumed` say whether reports that were taken back or
    that a step has used are.
    """
    where: list[str] = []
    values: list[Any] = []
    conditions = (
        ("scenario = ? COLLATE NOCASE", scenario),
        (_ON_RECORD, None if record is None else to_blob(record)),
        ("source = ?", source),
        ("session = ?", session),
        ("source != ?", left_out),
        ("sequence < ?", before),
    )
    for condition, value in conditions:
        if value is not None:
            where.append(condition)
            values.append(value)
    if not withdrawn:
        where.append("withdrawn_at IS NULL")
    if not consumed:
        where.append("consumed_by IS NULL")
    limits = f" WHERE {' AND '.join(where)}" if where else ""
    rows = conn.execute(
        f"SELECT {REPORT_COLUMNS} FROM reports{limits} ORDER BY sequence DESC LIMIT ?", (*values, limit)
    ).fetchall()
    return [as_report(conn, row) for row in rows]


REPORT_COLUMNS = (
    "sequence, id, scenario, source, session, score, feedback_json, metadata_json,"
    " created_at, consumed_by, withdrawn_at, revised_at"
)


def as_report(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Row:
    """The row of `report_row` from the columns of `REPORT_COLUMNS`."""
    references = conn.execute(
        "SELECT records.id FROM report_references JOIN records ON records.sequence = report_references.record"
        " WHERE report_references.report = ? ORDER BY report_references.sequence",
        (row[0],),
    ).fetchall()
    return {
        "sequence": row[0],
        "id": from_blob(row[1]),
        "agent_record_id": from_blob(row[1]),
        "scenario": row[2],
        "source": row[3],
        "session": row[4],
        "score": row[5],
        "feedback": _parsed(row[6]),
        "metadata": _parsed(row[7]),
        "references": [from_blob(reference[0]) for reference in references],
        "scope": "receipt" if len(references) == 1 else "session" if references else "scenario",
        "created_at": row[8],
        "consumed_by": row[9],
        "withdrawn_at": row[10],
        "revised_at": row[11],
        "revisions": _revisions(conn, row[0]),
    }


def _revisions(conn: sqlite3.Connection, report: int) -> list[Row]:
    found = conn.execute(
        "SELECT number, source, score, feedback_json, metadata_json, at, undone_at FROM report_revisions"
        " WHERE report = ? ORDER BY number",
        (report,),
    ).fetchall()
    return [
        {
            "number": row[0],
            "source": row[1],
            "score": row[2],
            "feedback": _parsed(row[3]),
            "metadata": _parsed(row[4]),
            "at": row[5],
            "undone_at": row[6],
        }
        for row in found
    ]


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _report_id(value: object) -> str:
    if value is None:
        return new_id()
    if isinstance(value, str) and _UUID.match(value):
        value = value.replace("-", "").lower()
    if not is_id(value):
        raise InvalidInput("agent_record_id must be 32 hex digits or a UUID")
    return str(value)


def _score(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("score must be a number")
    try:
        score = float(value)
    except OverflowError:
        score = math.inf
    if not math.isfinite(score):
        raise InvalidInput("score must be a finite number")
    return score


def _feedback(value: object) -> object:
    if value is not None and not isinstance(value, str | dict):
        raise InvalidInput("feedback must be a text or an object")
    return value


def _metadata(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidInput("metadata must be an object")
    training = value.get("training")
    if isinstance(training, dict) and "eligible" in training:
        raise InvalidInput("metadata.training.eligible is not accepted: a report cannot opt out of training")
    return value


def _references(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput("references must be a list of receipts")
    if len(value) > REFERENCES_MAX:
        raise InvalidInput(f"references holds {len(value)} receipts, at most {REFERENCES_MAX} are accepted")
    seen: set[str] = set()
    for receipt in value:
        if not is_id(receipt):
            shown = repr(receipt if isinstance(receipt, str) else type(receipt).__name__)[:80]
            raise InvalidInput(f"references holds {shown}, which is not a receipt of 32 hex digits")
        if receipt in seen:
            raise InvalidInput(f"references holds {receipt} twice")
        seen.add(receipt)
    return list(value)


def _find(conn: sqlite3.Connection, scenario: str, receipt: str) -> int:
    row = conn.execute("SELECT sequence, scenario FROM records WHERE id = ?", (to_blob(receipt),)).fetchone()
    if row is None:
        raise InvalidInput(f"there is no record {receipt}", "reef records list")
    if row[1].casefold() != scenario.casefold():
        raise InvalidInput(f"record {receipt} belongs to scenario {row[1]!r}, not to {scenario!r}")
    return int(row[0])


def canonical(value: object) -> str:
    """One text for equal JSON values. Raises InvalidInput for what JSON cannot hold."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a report must be plain JSON without NaN or infinity: {error}") from None
