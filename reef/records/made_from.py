"""What was made from records: the reports on them, the asks of their sessions, the steps that used these, and versions.

This is what a person is shown before anything is forgotten, and the same look decides what goes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from reef.ids import from_blob
from reef.records.choosing import Chosen, carry, users
from reef.records.sweep import ROOTS, Bits, Turn, mark, reach

Row = dict[str, Any]

KINDS = ("reports", "asks", "steps")
"""What is made from records and may be kept by a person's choice."""

_SHOWN = 5
_CHOSEN = "(SELECT sequence FROM chosen)"


def made_from(chosen: Chosen, keep: frozenset[str]) -> Row:
    """Everything that was made from the chosen records, as JSON.

    The calls that a step made from them are records too: they join the chosen ones unless steps are kept.
    """
    conn = chosen.conn
    while True:
        reports, asks = _reports(conn), _asks(conn)
        steps = _steps(conn, {row["id"] for row in reports} | {row["id"] for row in asks})
        before = chosen.add(())
        if "steps" in keep or chosen.add(_calls_of(conn, steps)) == before:
            break
    receipts = [from_blob(row[0]) for row in conn.execute(f"SELECT id FROM records WHERE sequence IN {_CHOSEN}")]
    return {
        "receipts": sorted(receipts),
        "sessions": _sessions(conn),
        "same_session": _of_the_same_session(conn),
        "reports": reports,
        "asks": asks,
        "steps": steps,
        "tasks": [
            row[0]
            for row in conn.execute(f"SELECT DISTINCT task FROM task_records WHERE record IN {_CHOSEN}").fetchall()
        ],
        "versions": _versions(conn, steps),
        "keep": sorted(keep),
    }


def token(found: Row) -> str:
    """Stands for what was shown: two looks that would remove the same things have the same token."""
    part = {
        "receipts": found["receipts"],
        "reports": [row["id"] for row in found["reports"]],
        "asks": [row["id"] for row in found["asks"]],
        "steps": [(row["scenario"], row["step"], row["candidate"]) for row in found["steps"]],
        "versions": [(row["scenario"], row["version"], row["state"]) for row in found["versions"]],
        "tasks": found["tasks"],
        "keep": found["keep"],
    }
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:32]


def shared_with_kept(chosen: Chosen, turn: Turn) -> Row:
    """How much of the chosen records' bodies other records hold too, and which records those are.

    `{"parts", "bytes", "records", "receipts"}`; the newest few receipts.
    """
    conn = chosen.conn
    going = {int(row[0]) for row in conn.execute("SELECT sequence FROM chosen").fetchall()}
    own_parts, own_nodes = _reached(conn)
    kept = mark(conn, turn, without=going)
    shared = Bits()
    number = size = 0
    for part in own_parts:
        if part in kept.parts:
            shared.add(part)
            number += 1
            size += conn.execute("SELECT length(body) FROM parts WHERE sequence = ?", (part,)).fetchone()[0]
    nodes = Bits()
    for node in own_nodes:
        if node in kept.nodes:
            nodes.add(node)
    holders = [record for record in _holders(conn, shared, nodes, turn) if record not in going] if number else []
    receipts = [
        from_blob(conn.execute("SELECT id FROM records WHERE sequence = ?", (record,)).fetchone()[0])
        for record in holders[-_SHOWN:]
    ]
    return {"parts": number, "bytes": size, "records": len(holders), "receipts": receipts[::-1]}


def _holders(conn: sqlite3.Connection, parts: Bits, nodes: Bits, turn: Turn) -> list[int]:
    carry(conn, parts, nodes, turn)
    return users(conn, parts, nodes, turn)


def _reached(conn: sqlite3.Connection) -> tuple[set[int], set[int]]:
    """The parts and the nodes of the chosen records' bodies."""
    parts: set[int] = set()
    nodes: set[int] = set()
    for roots in conn.execute(f"SELECT {', '.join(ROOTS)} FROM records WHERE sequence IN {_CHOSEN}").fetchall():
        parts.update(reach(conn, roots, nodes))
    return parts, nodes


def _reports(conn: sqlite3.Connection) -> list[Row]:
    """Reports on chosen records; `others` are the records that they are about too and that stay."""
    found = conn.execute(
        f"""SELECT reports.id, reports.scenario, reports.source, reports.score, reports.feedback_json,
        reports.consumed_by, (SELECT count(*) FROM report_references WHERE report = reports.sequence
            AND record NOT IN {_CHOSEN})
        FROM reports WHERE reports.sequence IN (SELECT report FROM report_references
            JOIN chosen ON chosen.sequence = report_references.record) ORDER BY reports.sequence"""
    ).fetchall()
    names = ("scenario", "source", "score", "feedback", "step", "others")
    return [{"id": from_blob(row[0])} | dict(zip(names, row[1:], strict=True)) for row in found]


def _sessions(conn: sqlite3.Connection) -> list[str]:
    """The keys of sessions of which no record stays."""
    found = conn.execute(
        f"""SELECT DISTINCT session FROM records WHERE sequence IN {_CHOSEN} AND session IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM records AS other WHERE other.session = records.session
            AND other.sequence NOT IN {_CHOSEN})"""
    ).fetchall()
    return sorted(row[0] for row in found)


def _of_the_same_session(conn: sqlite3.Connection) -> int:
    """How many records stay of sessions of which some go: later ones repeat what earlier ones said."""
    found = conn.execute(
        f"SELECT count(*) FROM records WHERE sequence NOT IN {_CHOSEN} AND session IN (SELECT DISTINCT session"
        f" FROM records WHERE session IS NOT NULL AND sequence IN {_CHOSEN})"
    ).fetchone()
    return int(found[0])


def _asks(conn: sqlite3.Connection) -> list[Row]:
    """Asks that were made in a session of which no record stays."""
    rows = []
    for key in _sessions(conn):
        rows += conn.execute(
            "SELECT id, scenario, number, text, state, step FROM asks WHERE session = ? OR session IN"
            " (SELECT lower(hex(id)) FROM sessions WHERE key = ?) ORDER BY sequence",
            (key, key),
        ).fetchall()
    names = ("scenario", "number", "text", "state", "step")
    return [{"id": from_blob(row[0])} | dict(zip(names, row[1:], strict=True)) for row in rows]


def _steps(conn: sqlite3.Connection, inputs: set[str]) -> list[Row]:
    """Steps that used one of the inputs (reports and asks) or a chosen record itself."""
    chosen = {
        from_blob(row[0]) for row in conn.execute(f"SELECT id FROM records WHERE sequence IN {_CHOSEN}").fetchall()
    }
    by_report = conn.execute(
        f"""SELECT DISTINCT scenario, consumed_by FROM reports WHERE consumed_by IS NOT NULL AND sequence IN
        (SELECT report FROM report_references WHERE record IN {_CHOSEN})"""
    ).fetchall()
    named = {(str(scenario), int(step)) for scenario, step in by_report}
    found = []
    for scenario, number, state, summary, candidate, version, *used in conn.execute(
        "SELECT scenario, number, state, summary, candidate, version, consumed_json, asks_json FROM steps"
        " ORDER BY sequence"
    ).fetchall():
        ids = {str(name) for text in used if text for name in json.loads(text)}
        if (scenario, number) in named or not ids.isdisjoint(inputs) or not ids.isdisjoint(chosen):
            found.append(
                {"scenario": scenario, "step": number, "state": state, "summary": summary, "candidate": candidate,
                 "version": version}
            )  # fmt: skip
    return found


def _calls_of(conn: sqlite3.Connection, steps: Iterable[Row]) -> list[int]:
    """The records of the model calls that steps made."""
    found: list[int] = []
    for row in steps:
        found += [
            int(record)
            for (record,) in conn.execute(
                "SELECT records.sequence FROM sessions JOIN records ON records.session = sessions.key"
                " WHERE sessions.kind = 'step' AND sessions.scenario = ? AND sessions.step = ?",
                (row["scenario"], row["step"]),
            ).fetchall()
        ]
    return found


def _versions(conn: sqlite3.Connection, steps: Iterable[Row]) -> list[Row]:
    """Versions that such a step made. Their content stays: history is not rewritten."""
    found = []
    for row in steps:
        found += [
            {"scenario": row["scenario"], "version": number, "state": state, "step": row["step"], "summary": summary}
            for number, state, summary in conn.execute(
                "SELECT number, state, summary FROM versions WHERE scenario = ? AND step = ? AND state != 'conflict'",
                (row["scenario"], row["step"]),
            ).fetchall()
        ]
    return found
