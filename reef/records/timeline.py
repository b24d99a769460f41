"""What came into one scenario, calls, reports and asks in one order, as the public protocol lists it.

The order is that of places: a record stands at its sequence times 2^20, a report or an ask behind the last record that
there was when it came. Whoever goes on from the last place that they saw misses nothing and sees nothing twice.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Literal

import orjson

from reef.errors import NotFound
from reef.ids import from_blob, to_blob
from reef.records import parts
from reef.records.envelopes import write_call
from reef.records.reports import report_row

Row = dict[str, Any]
Kind = Literal["inference", "report", "train"]
KINDS: tuple[Kind, ...] = ("inference", "report", "train")

_SHIFT = 20
_SELECT: dict[Kind, str] = {
    "inference": f"""SELECT sequence << {_SHIFT}, id, started_at, (SELECT release_id FROM versions
 WHERE versions.scenario = records.scenario AND versions.number = records.version), NULL, sequence, state
 FROM records WHERE scenario = ?""",
    "report": "SELECT place, id, created_at, NULL, score, sequence, source FROM reports WHERE scenario = ?",
    "train": "SELECT place, id, created_at, release_id, NULL, sequence, state FROM asks WHERE scenario = ?",
}


def timeline(conn: sqlite3.Connection, scenario: str, after: int, limit: int, kind: Kind | None = None) -> list[Row]:
    """The `limit` next behind place `after`, oldest first, of one kind or of all, without what they say.

    Keys: `sequence` (the place), `agent_record_id, request_type, created_at, references, artifact_ref, score, state`.
    """
    found: list[Row] = []
    for one in KINDS if kind is None else (kind,):
        place, bound = ("sequence", after >> _SHIFT) if one == "inference" else ("place", after)
        rows = conn.execute(
            f"{_SELECT[one]} AND {place} > ? ORDER BY {place} LIMIT ?", (scenario, bound, limit)
        ).fetchall()
        found += [_row(conn, one, row) for row in rows]
    return sorted(found, key=lambda row: int(row["sequence"]))[:limit]


def entry(conn: sqlite3.Connection, scenario: str, id: str) -> bytes:
    """The JSON of one of them with its `payload`; the bodies of a call stand in it byte for byte.

    Raises NotFound, also for a call whose bodies are not stored any more.
    """
    for kind in KINDS:
        row = conn.execute(f"{_SELECT[kind]} AND id = ?", (scenario, to_blob(id))).fetchone()
        if row is not None:
            head = orjson.dumps(_row(conn, kind, row))
            return head[:-1] + b',"payload":' + _payload(conn, kind, id) + b"}"
    raise NotFound(f"scenario {scenario!r} has no record {id}", f"reef records list --scenario {scenario}")


def _row(conn: sqlite3.Connection, kind: Kind, row: tuple[Any, ...]) -> Row:
    references: list[tuple[bytes]] = []
    if kind == "report":
        references = conn.execute(
            "SELECT records.id FROM report_references JOIN records ON records.sequence = report_references.record"
            " WHERE report_references.report = ? ORDER BY report_references.sequence",
            (row[5],),
        ).fetchall()
    return {
        "sequence": row[0],
        "agent_record_id": from_blob(row[1]),
        "request_type": kind,
        "created_at": row[2],
        "references": [from_blob(reference[0]) for reference in references],
        "artifact_ref": row[3],
        "score": row[4],
        "state": row[6],
    }


def _payload(conn: sqlite3.Connection, kind: Kind, id: str) -> bytes:
    if kind == "inference":
        return _exchange(conn, id)
    if kind == "report":
        report = report_row(conn, id)
        said = {name: report[name] for name in ("score", "feedback", "references", "metadata")}
    else:
        row = conn.execute(
            "SELECT text, session, release_id, requires_json, client_json FROM asks WHERE id = ?", (to_blob(id),)
        ).fetchone()
        said = dict(zip(("text", "session", "release_id"), row, strict=False))
        said |= {"requires": json.loads(row[3] or "[]"), "client": json.loads(row[4] or "null")}
    return json.dumps(said, separators=(",", ":")).encode()


def _exchange(conn: sqlite3.Connection, receipt: str) -> bytes:
    """Request and reply of a call, the reply as the member `response`."""
    row = conn.execute(
        "SELECT request_part, request_chain, response_part, response_chain FROM records WHERE id = ?",
        (to_blob(receipt),),
    ).fetchone()
    request, response = parts.get_body(conn, row[:2]), parts.get_body(conn, row[2:])
    if request is None:
        raise NotFound(f"the bodies of record {receipt} are not stored any more", f"reef records show {receipt}")
    envelope = write_call(receipt, {}, {"request": request, "response": response})
    return envelope[envelope.index(b'"payload":') + len(b'"payload":') : -1]
