"""Places: one order over records, reports and asks, kept for those of an older reef as well."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlite_utils import Database

from reef.ids import new_id
from reef.records import migrations, rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.schema import APPLICATION_ID
from reef.records.timeline import timeline
from reef.records.writer import Writer
from tests.unit.records.calling import recorded

_ASK = """INSERT INTO asks (id, scenario, number, text, source, state, created_at)
 VALUES (?, 'default', ?, 't', 'p', 'q', '')"""
_RECORD = """INSERT INTO records (id, scenario, dialect, route, streaming, state, source, request_bytes, started_at)
 VALUES (?, 'default', 'chat', '/', 0, 'complete', 'program', 2, '')"""
_REPORT = (
    "INSERT INTO reports (id, scenario, source, content_hash, created_at) VALUES (?, 'default', 'person', x'', '')"
)


def order(reader: Reader, after: int = 0) -> list[str]:
    rows = reader.query(lambda conn: timeline(conn, "default", after, 100))
    assert len({row["sequence"] for row in rows}) == len(rows)
    return [row["request_type"][0] for row in rows]


def test_what_an_older_reef_stored_gets_places_and_what_comes_later_stands_behind_it(store: Path) -> None:
    with sqlite3.connect(store, isolation_level=None) as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        migrations.store.apply(Database(connection), stop_before="m006_records_found_used_and_forgotten")
        for number in (1, 2):
            connection.execute(_RECORD, (bytes.fromhex(new_id()),))
            connection.execute(_ASK, (bytes.fromhex(new_id()), number))
        for _ in range(3):
            connection.execute(_REPORT, (bytes.fromhex(new_id()),))
        # Two on the first record, one on nothing.
        connection.executemany("INSERT INTO report_references (report, record) VALUES (?, 1)", [(1,), (3,)])
    connection.close()
    writer, reader = Writer(store), Reader(store)
    try:
        assert order(reader) == ["t", "t", "r", "i", "r", "r", "i"]
        last = reader.query(lambda conn: timeline(conn, "default", 0, 100))[-1]["sequence"]
        report = {"score": 1}
        writer.submit(lambda conn: store_report(conn, "default", report, "person")).result(30)
        writer.submit(lambda conn: rows.add_ask(conn, "default", "be brief")).result(30)
        recorded(writer)
        writer.submit(lambda conn: store_report(conn, "default", report, "person")).result(30)
        assert order(reader, last) == ["r", "t", "i", "r"]
    finally:
        reader.close()
        writer.close()
