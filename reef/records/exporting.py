"""Records and reports as envelopes on their way out: read in windows, never all at once, oldest first.

A report comes behind every record that it refers to, and only when all of them come. What depends on this home alone is
left out: sequences, the steps that used a report, and that a record was imported.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from reef.errors import Failed
from reef.ids import from_blob
from reef.records import parts, reports
from reef.records.envelopes import CALL_FACTS, REPORT_FACTS, TRANSCRIPT, write_call, write_report
from reef.records.filters import Filter

T = TypeVar("T")
WINDOW = 100

_OWN = ("cwd", "title", "tags", "notes", "attempts")
_COLUMNS = tuple(name for name in CALL_FACTS if name not in _OWN)
_SESSION = """(SELECT {column} FROM sessions WHERE sessions.key = records.session
 AND sessions.scenario = records.scenario COLLATE NOCASE ORDER BY sessions.sequence LIMIT 1)"""
_SELECT = f"""SELECT records.sequence, records.id, {", ".join("records." + name for name in _COLUMNS)},
 tags_json, notes_json, attempts_json, {_SESSION.format(column="cwd")}, {_SESSION.format(column="title")},
 request_part, request_chain, request_bytes, request_hash, response_part, response_chain, response_bytes,
 response_hash, raw_part, raw_chain FROM records"""
_COMPLETE = """ AND NOT EXISTS (SELECT 1 FROM report_references LEFT JOIN records
 ON records.sequence = report_references.record AND ({chosen}) WHERE report_references.report = reports.sequence
 AND records.sequence IS NULL)"""


class Store(Protocol):
    """Whoever holds the connection: `reef.records.reader.Reader`."""

    def query(self, read: Callable[[sqlite3.Connection], T]) -> T: ...


@dataclass
class Export:
    """What is exported of a store: all of it, or what is of a scenario, of a session, since a time.

    Iterating gives the envelope of every record, and then of their reports, each one line without its end.
    """

    store: Store
    scenario: str | None = None
    session: str | None = None
    since: str | None = None
    running: int = 0
    """Calls that had not ended, and were left out; counted on the way."""
    damaged: list[str] = field(default_factory=list)
    """Receipts of records whose bodies cannot be read, left out as well."""

    def __iter__(self) -> Iterator[bytes]:
        wanted = Filter(scenario=self.scenario, session=self.session, since=self.since)
        where, values = self.store.query(wanted.conditions)
        condition = " AND ".join(["1", *where])
        yield from self._calls(condition, values)
        yield from self._reports(condition, values)

    def _calls(self, condition: str, values: list[Any]) -> Iterator[bytes]:
        sql = f"{_SELECT} WHERE {condition} AND records.sequence > ? ORDER BY records.sequence LIMIT {WINDOW}"
        last = 0
        while rows := self.store.query(partial(_fetch, sql, (*values, last))):
            for row in rows:
                last = row[0]
                if row[2 + _COLUMNS.index("state")] == "open":
                    self.running += 1
                    continue
                try:
                    yield self.store.query(partial(_call, row))
                except Failed:
                    self.damaged.append(from_blob(row[1]))

    def _reports(self, condition: str, values: list[Any]) -> Iterator[bytes]:
        # What was left out of the records is left out here.
        whole = _COMPLETE.format(chosen=f"{condition} AND records.state != 'open'")
        own = "(?2 IS NULL OR scenario = ?2 COLLATE NOCASE)"
        loose = ""
        if self.session is not None or self.since is not None:
            # A report without references belongs to no record that could be asked about.
            loose = " AND EXISTS (SELECT 1 FROM report_references WHERE report = reports.sequence)"
        sql = (
            f"SELECT {reports.REPORT_COLUMNS} FROM reports WHERE sequence > ?1 AND {own}{loose}{_numbered(whole, 3)}"
            f" ORDER BY sequence LIMIT {WINDOW}"
        )
        last = 0
        damaged = set(self.damaged)
        while found := self.store.query(partial(_fetch_reports, sql, (last, self.scenario, *values))):
            for row in found:
                last = row["sequence"]
                if damaged.isdisjoint(row["references"]):
                    yield _report(row)


def _fetch(sql: str, values: tuple[Any, ...], conn: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return conn.execute(sql, values).fetchall()


def _call(row: tuple[Any, ...], conn: sqlite3.Connection) -> bytes:
    facts: dict[str, Any] = dict(zip(_COLUMNS, row[2:], strict=False))
    tags, notes, attempts, cwd, title, *rest = row[2 + len(_COLUMNS) :]
    for name, kind in CALL_FACTS.items():
        if kind is bool:
            facts[name] = bool(facts[name])
    facts |= {"tags": _parsed(tags), "attempts": _parsed(attempts), "cwd": cwd, "title": title}
    found = _parsed(notes) or {}
    came = found.pop("imported", {})
    facts["notes"] = found or None
    facts["version"] = facts["version"] if facts["version"] is not None else came.get("version")
    if not (facts["origin"] or "").startswith(TRANSCRIPT):
        del facts["origin"]
    bodies: dict[str, bytes | dict[str, Any] | None] = {}
    for name, (part, chain, size, wanted) in (("request", rest[:4]), ("response", rest[4:8])):
        body = _body(conn, from_blob(row[1]), (part, chain), wanted)
        bodies[name] = body
        if body is None and wanted is not None:
            bodies[name] = {"bytes": size, "hash": wanted.hex()}
        elif body is not None and size != len(body):
            facts[f"{name}_bytes"] = size
    bodies["raw"] = _body(conn, from_blob(row[1]), (rest[8], rest[9]), None)
    return write_call(from_blob(row[1]), facts, bodies)


def _body(conn: sqlite3.Connection, receipt: str, place: parts.Place, wanted: bytes | None) -> bytes | None:
    body = parts.get_body(conn, place)
    if body is not None and wanted is not None and parts.digest(body) != wanted:
        raise Failed(f"a stored body of record {receipt} is damaged", "reef doctor")
    return body


def _fetch_reports(sql: str, values: tuple[Any, ...], conn: sqlite3.Connection) -> list[dict[str, Any]]:
    return [reports.as_report(conn, row) for row in conn.execute(sql, values).fetchall()]


def _numbered(sql: str, first: int) -> str:
    """`sql` with numbers for its question marks, from `first` on."""
    pieces = sql.split("?")
    return pieces[0] + "".join(f"?{first + place}{piece}" for place, piece in enumerate(pieces[1:]))


def _report(row: dict[str, Any]) -> bytes:
    said = {name: row[name] for name in ("score", "feedback", "metadata") if row[name] is not None}
    if row["references"]:
        said["references"] = row["references"]
    return write_report(row["id"], said, {name: row[name] for name in REPORT_FACTS if row[name]})


def _parsed(text: str | None) -> Any:
    return json.loads(text) if text else None
