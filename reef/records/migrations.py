"""The schema, one migration per change, in the order they are applied.

A published migration is never edited: a store in the field has already run it. `schema.SCHEMA_VERSION` counts them, and
each sets `user_version` in its own transaction, so that a reader knows the schema without loading sqlite-utils.

Every table is ordered by `sequence`. Ids are 16-byte blobs, times RFC 3339 text in UTC, `*_json` columns JSON text,
yes/no columns 0 or 1. A step is named by its number within its scenario wherever another table points at it.
`pid_started` counts clock ticks from boot to the start of a process, as `/proc` does.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from reef.records.schema import SCHEMA_VERSION
from reef.records.schema_m006 import M006_FORGET, M006_LISTS, M006_SEARCH
from reef.records.schema_m007 import M007_PINS, M007_PROPOSALS
from reef.records.views import M006_VIEWS

store = Migrations("reef")

_M001 = (
    """CREATE TABLE scenarios (
        sequence INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        created_at TEXT NOT NULL,
        recipe TEXT NOT NULL,
        adapter TEXT NOT NULL,
        engine TEXT,
        state TEXT NOT NULL,
        config_json TEXT NOT NULL
    )""",
    """CREATE TABLE sessions (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        kind TEXT NOT NULL,
        adapter TEXT,
        version INTEGER,
        step INTEGER,
        key TEXT NOT NULL,
        cwd TEXT,
        title TEXT,
        token_hash BLOB UNIQUE,
        pid INTEGER,
        opened_at TEXT NOT NULL,
        closed_at TEXT
    )""",
    "CREATE INDEX sessions_by_key ON sessions(key)",
    """CREATE TABLE parts (
        sequence INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        codec TEXT NOT NULL,
        body BLOB NOT NULL
    )""",
    """CREATE TABLE chains (
        sequence INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        previous INTEGER REFERENCES chains(sequence),
        part INTEGER REFERENCES parts(sequence),
        child INTEGER REFERENCES chains(sequence)
    )""",
    """CREATE TABLE records (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        session TEXT,
        dialect TEXT NOT NULL,
        route TEXT NOT NULL,
        model TEXT,
        streaming INTEGER NOT NULL,
        state TEXT NOT NULL,
        source TEXT NOT NULL,
        adapter TEXT,
        version INTEGER,
        engine TEXT,
        load_id TEXT,
        request_part INTEGER REFERENCES parts(sequence),
        request_chain INTEGER REFERENCES chains(sequence),
        response_part INTEGER REFERENCES parts(sequence),
        response_chain INTEGER REFERENCES chains(sequence),
        raw_part INTEGER REFERENCES parts(sequence),
        raw_chain INTEGER REFERENCES chains(sequence),
        request_bytes INTEGER NOT NULL,
        response_bytes INTEGER,
        request_hash BLOB,
        response_hash BLOB,
        status INTEGER,
        error TEXT,
        started_at TEXT NOT NULL,
        first_byte_ms REAL,
        duration_ms REAL,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cached_tokens INTEGER,
        finish_reason TEXT,
        redactions INTEGER NOT NULL DEFAULT 0,
        trainable INTEGER NOT NULL DEFAULT 0,
        attempts_json TEXT,
        notes_json TEXT,
        tags_json TEXT,
        side_call INTEGER NOT NULL DEFAULT 0,
        preview TEXT,
        answer_preview TEXT
    )""",
    "CREATE INDEX records_by_scenario ON records(scenario)",
    "CREATE INDEX records_by_session ON records(session) WHERE session IS NOT NULL",
    "CREATE INDEX records_open ON records(state) WHERE state = 'open'",
    """CREATE TABLE progress (
        sequence INTEGER PRIMARY KEY,
        record INTEGER NOT NULL REFERENCES records(sequence),
        body BLOB NOT NULL
    )""",
    "CREATE INDEX progress_by_record ON progress(record)",
    """CREATE TABLE reports (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        source TEXT NOT NULL,
        session TEXT,
        score REAL,
        feedback_json TEXT,
        metadata_json TEXT,
        content_hash BLOB NOT NULL,
        created_at TEXT NOT NULL,
        consumed_by INTEGER,
        withdrawn_at TEXT
    )""",
    "CREATE INDEX reports_by_scenario ON reports(scenario)",
    """CREATE TABLE report_references (
        sequence INTEGER PRIMARY KEY,
        report INTEGER NOT NULL REFERENCES reports(sequence),
        record INTEGER NOT NULL REFERENCES records(sequence)
    )""",
    "CREATE INDEX report_references_by_report ON report_references(report)",
    "CREATE INDEX report_references_by_record ON report_references(record)",
    """CREATE TABLE asks (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        session TEXT,
        release_id TEXT,
        requires_json TEXT,
        client_json TEXT,
        content_hash BLOB,
        state TEXT NOT NULL,
        step INTEGER,
        created_at TEXT NOT NULL,
        settled_at TEXT,
        reason TEXT,
        UNIQUE (scenario, number)
    )""",
    """CREATE TABLE steps (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        number INTEGER NOT NULL,
        recipe TEXT NOT NULL,
        proposer TEXT,
        policy TEXT,
        state TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        asks_json TEXT,
        consumed_json TEXT,
        summary TEXT,
        reason TEXT,
        evaluation_json TEXT,
        mutations_json TEXT,
        candidate TEXT,
        version INTEGER,
        metrics_json TEXT,
        notes_json TEXT,
        state_json TEXT,
        pid INTEGER,
        UNIQUE (scenario, number)
    )""",
    """CREATE TABLE activities (
        sequence INTEGER PRIMARY KEY,
        scenario TEXT NOT NULL,
        step INTEGER NOT NULL,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        failed INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX activities_by_step ON activities(scenario, step)",
    """CREATE TABLE episodes (
        sequence INTEGER PRIMARY KEY,
        scenario TEXT NOT NULL,
        step INTEGER NOT NULL,
        side TEXT NOT NULL,
        purpose TEXT NOT NULL,
        task TEXT,
        state TEXT NOT NULL,
        exit_code INTEGER,
        duration_ms REAL,
        detail_json TEXT
    )""",
    "CREATE INDEX episodes_by_step ON episodes(scenario, step)",
    """CREATE TABLE versions (
        sequence INTEGER PRIMARY KEY,
        scenario TEXT NOT NULL,
        number INTEGER NOT NULL,
        release_id TEXT NOT NULL,
        content_id TEXT NOT NULL,
        parent TEXT,
        step INTEGER,
        operation TEXT NOT NULL,
        state TEXT NOT NULL,
        summary TEXT,
        components_json TEXT,
        requires_json TEXT,
        evaluation_json TEXT,
        created_at TEXT NOT NULL,
        UNIQUE (scenario, number)
    )""",
    "CREATE INDEX versions_by_release ON versions(release_id)",
    """CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        scenario TEXT,
        ids_json TEXT NOT NULL,
        state TEXT
    )""",
)


@store(name="m001_the_first_schema")
def m001_the_first_schema(db: Database) -> None:
    _run(db, _M001, 1)


@store(name="m002_when_a_sessions_process_started")
def m002_when_a_sessions_process_started(db: Database) -> None:
    _run(db, ("ALTER TABLE sessions ADD COLUMN pid_started INTEGER",), 2)


@store(name="m003_what_reached_the_model")
def m003_what_reached_the_model(db: Database) -> None:
    _run(
        db,
        (
            "ALTER TABLE records ADD COLUMN expected_tokens INTEGER",
            "ALTER TABLE records ADD COLUMN prompt_cut INTEGER NOT NULL DEFAULT 0",
        ),
        3,
    )


@store(name="m004_conversations_that_a_server_holds")
def m004_conversations_that_a_server_holds(db: Database) -> None:
    _run(
        db,
        (
            "ALTER TABLE records ADD COLUMN follows TEXT",
            "ALTER TABLE records ADD COLUMN reply_name TEXT",
            "CREATE INDEX records_by_reply ON records(reply_name) WHERE reply_name IS NOT NULL",
        ),
        4,
    )


@store(name="m005_short_bodies_without_a_hash")
def m005_short_bodies_without_a_hash(db: Database) -> None:
    _run(
        db,
        (
            """CREATE TABLE new_parts (
                sequence INTEGER PRIMARY KEY,
                hash BLOB,
                size INTEGER NOT NULL,
                codec TEXT NOT NULL,
                body BLOB NOT NULL
            )""",
            "INSERT INTO new_parts SELECT sequence, hash, size, codec, body FROM parts ORDER BY sequence",
            "DROP TABLE parts",
            "ALTER TABLE new_parts RENAME TO parts",
            "CREATE UNIQUE INDEX parts_by_hash ON parts(hash) WHERE hash IS NOT NULL",
        ),
        5,
    )


_NEXT_PLACE = """max(coalesce((SELECT max(sequence) FROM records), 0) << 20,
 coalesce((SELECT max(place) FROM reports), 0), coalesce((SELECT max(place) FROM asks), 0)) + 1"""
_M006_REPORTS = (
    """CREATE TABLE report_revisions (
        sequence INTEGER PRIMARY KEY,
        report INTEGER NOT NULL REFERENCES reports(sequence),
        number INTEGER NOT NULL,
        source TEXT NOT NULL,
        score REAL,
        feedback_json TEXT,
        metadata_json TEXT,
        at TEXT NOT NULL,
        undone_at TEXT,
        UNIQUE (report, number)
    )""",
    "ALTER TABLE reports ADD COLUMN revised_at TEXT",
    # Where a report or an ask stands among the records of all scenarios: behind the last one there was, which stands
    # at its sequence times 2^20. Whoever reads on from a place misses nothing that came later.
    "ALTER TABLE reports ADD COLUMN place INTEGER",
    "ALTER TABLE asks ADD COLUMN place INTEGER",
    "UPDATE asks SET place = sequence",
    """UPDATE reports SET place = (SELECT coalesce(max(record), 0) << 20 FROM report_references
        WHERE report = reports.sequence) + (SELECT count(*) FROM asks) + sequence""",
    "CREATE INDEX reports_by_place ON reports(place)",
    "CREATE INDEX asks_by_place ON asks(place)",
    f"""CREATE TRIGGER place_of_a_report AFTER INSERT ON reports WHEN NEW.place IS NULL
        BEGIN UPDATE reports SET place = {_NEXT_PLACE} WHERE sequence = NEW.sequence; END""",
    f"""CREATE TRIGGER place_of_an_ask AFTER INSERT ON asks WHEN NEW.place IS NULL
        BEGIN UPDATE asks SET place = {_NEXT_PLACE} WHERE sequence = NEW.sequence; END""",
)
# `import` for a record that came in a file of records, `transcript:<agent>` for one made from an agent's own session
# file; NULL for a call that reef served.
_M006_IMPORT = ("ALTER TABLE records ADD COLUMN origin TEXT",)
# What is used today must not cost a look at every call there ever was.
_M006_USAGE = ("CREATE INDEX records_by_time ON records(started_at)",)
# Each subject's own statements, in the order in which they are run.
_M006: tuple[tuple[str, ...], ...] = (
    *(_M006_REPORTS, _M006_IMPORT, _M006_USAGE),
    *(M006_FORGET, M006_SEARCH, M006_LISTS, M006_VIEWS),
)


@store(name="m006_records_found_used_and_forgotten")
def m006_records_found_used_and_forgotten(db: Database) -> None:
    _run(db, tuple(statement for subject in _M006 for statement in subject), 6)


# Each subject's own statements, in the order in which they are run.
_M007: tuple[tuple[str, ...], ...] = (M007_PINS, M007_PROPOSALS)


@store(name="m007_agents_and_versions")
def m007_agents_and_versions(db: Database) -> None:
    _run(db, tuple(statement for subject in _M007 for statement in subject), 7)


def _run(db: Database, statements: tuple[str, ...], version: int) -> None:
    # One statement at a time: `executescript` would commit the transaction that sqlite-utils opened.
    for statement in statements:
        db.execute(statement)
    db.execute(f"PRAGMA user_version={version}")


def migrate(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Apply what is missing; a store that holds data is copied first, to `<name>.schema-<version>`.

    The caller holds the lock of `schema.open_store`. A migration that fails leaves the store as it was.
    """
    if version > 0:
        _copy(connection, path.with_name(f"{path.name}.schema-{version}"))
    store.apply(Database(connection, recursive_triggers=False, execute_plugins=False))
    reached = connection.execute("PRAGMA user_version").fetchone()[0]
    assert reached == SCHEMA_VERSION, f"schema {reached} after migrating, {SCHEMA_VERSION} expected"


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    partial.touch(0o600)
    copy = sqlite3.connect(partial)
    try:
        connection.backup(copy)
        # A copy is one file, not a file and a log.
        copy.execute("PRAGMA journal_mode=DELETE")
    finally:
        copy.close()
    partial.replace(target)
