"""Making, opening, migrating and refusing a store."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlite_utils import Database

from reef.errors import NotFound, Unavailable
from reef.records import migrations, schema
from reef.records.parts import prepare, put
from reef.records.reader import Reader
from reef.records.schema import APPLICATION_ID, SCHEMA_VERSION, StoreRefused, open_readonly, open_store, refusal
from reef.records.writer import Writer
from tests.unit.records.calling import recorded


def test_a_new_store_has_the_settings_that_cannot_be_changed_later(store: Path) -> None:
    connection = open_store(store)

    def value(name: str) -> object:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    assert value("auto_vacuum") == 2
    assert value("journal_mode") == "wal"
    assert value("synchronous") == 2
    assert value("secure_delete") == 1
    assert value("application_id") == APPLICATION_ID
    assert value("user_version") == SCHEMA_VERSION
    connection.close()


def test_the_store_and_its_side_files_are_private_whatever_the_umask(store: Path) -> None:
    before = os.umask(0)
    try:
        writer = Writer(store)
        recorded(writer)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in store.parent.glob("reef.db*")}
        writer.close()
    finally:
        os.umask(before)
    assert {"reef.db", "reef.db-wal", "reef.db-shm"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_every_table_is_ordered_by_sequence_and_known_to_sqlite_utils(store: Path) -> None:
    open_store(store).close()
    database = Database(store)
    names = set(database.table_names()) - {"_sqlite_migrations", "sqlite_sequence"}
    assert names >= {
        "scenarios", "sessions", "records", "chains", "parts", "progress", "reports", "report_references", "asks",
        "steps", "activities", "versions", "episodes", "events",
    }  # fmt: skip
    for name in names:
        # The search index can be made again from the records, and its tables are no one's to read.
        assert database[name].pks == ["sequence"] or name.startswith("search_"), name
    assert [migration.name for migration in migrations.store.applied(database)] == [
        "m001_the_first_schema",
        "m002_when_a_sessions_process_started",
        "m003_what_reached_the_model",
        "m004_conversations_that_a_server_holds",
        "m005_short_bodies_without_a_hash",
        "m006_records_found_used_and_forgotten",
        "m007_agents_and_versions",
    ]
    database.close()


def test_the_number_of_migrations_is_the_schema_version() -> None:
    assert len(migrations.store.pending(Database(memory=True))) == SCHEMA_VERSION


def test_a_store_of_a_newer_reef_is_refused_for_writing_and_reading_and_left_alone(store: Path) -> None:
    open_store(store).close()
    with sqlite3.connect(store) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    before = store.read_bytes()
    for opening in (open_store, open_readonly):
        with pytest.raises(StoreRefused, match="newer reef") as caught:
            opening(store)
        assert caught.value.hint
    assert store.read_bytes() == before


def test_a_foreign_sqlite_file_is_refused_and_left_alone(store: Path) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = store.read_bytes()
    for opening in (open_store, open_readonly):
        with pytest.raises(StoreRefused, match="not a reef store"):
            opening(store)
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"no database at all, but a longer text than a header" * 30, b"SQLite format 3\0junk"]
)
def test_a_file_that_is_no_database_is_refused_with_a_hint(store: Path, content: bytes) -> None:
    store.write_bytes(content)
    for opening in (open_store, open_readonly):
        with pytest.raises(StoreRefused) as caught:
            opening(store)
        assert str(store) in str(caught.value.hint)
    assert store.read_bytes() == content


def test_reading_where_nothing_was_made_yet_says_how_to_start(store: Path) -> None:
    with pytest.raises(NotFound) as caught:
        Reader(store).records()
    assert caught.value.hint == "reef up"
    assert not store.exists()


def test_a_store_of_an_older_reef_is_migrated_after_a_copy(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(store)
    receipt = recorded(writer, b"the request of an older reef")
    writer.close()

    monkeypatch.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(migrations.store, "_migrations", list(migrations.store._migrations))

    @migrations.store(name="a_column_more")
    def a_column_more(db: Database) -> None:
        db.execute("ALTER TABLE records ADD COLUMN mood TEXT")
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")

    with pytest.raises(Unavailable, match="older reef"):
        open_readonly(store)
    connection = open_store(store)
    assert connection.execute("SELECT mood FROM records").fetchall() == [(None,)]
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert Reader(store).request_bytes(receipt) == b"the request of an older reef"

    copy = store.with_name(f"reef.db.schema-{SCHEMA_VERSION}")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with sqlite3.connect(copy) as old:
        assert old.execute("SELECT count(*) FROM records").fetchone() == (1,)
        assert old.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    old.close()
    assert not list(store.parent.glob("*.partial"))


def older(store: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A store as the reef of schema `version` made it."""
    for module in (schema, migrations):
        monkeypatch.setattr(module, "SCHEMA_VERSION", version)
    monkeypatch.setattr(migrations.store, "_migrations", migrations.store._migrations[:version])
    connection = open_store(store)
    monkeypatch.undo()
    return connection


def test_bodies_of_schema_4_keep_their_places_and_hashes_and_are_found_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"messages": [{"content": f"{number} " * 400} for number in range(30)]}).encode()
    old = older(store, 4, monkeypatch)
    long = put(old, prepare(body))
    old.execute("DELETE FROM parts WHERE sequence = 2")
    add = "INSERT INTO parts (sequence, hash, size, codec, body) VALUES (?, ?, 5, 'raw', ?)"
    old.executemany(add, [(2, b"h" * 16, b"short"), (900, b"i" * 16, b"later")])
    before = old.execute("SELECT * FROM parts ORDER BY sequence").fetchall()
    old.close()

    connection = open_store(store)
    assert connection.execute("SELECT * FROM parts ORDER BY sequence").fetchall() == before
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA foreign_key_list(chains)").fetchall()[1][2] == "parts"
    assert put(connection, prepare(body)) == long
    assert connection.execute("SELECT max(sequence) FROM parts").fetchone() == (900,)
    assert put(connection, prepare(b"short")) == (901, None)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT INTO parts (hash, size, codec, body) VALUES (?, 5, 'raw', 'again')", (b"h" * 16,))
    plan = connection.execute("EXPLAIN QUERY PLAN SELECT sequence FROM parts WHERE hash = ?", (b"h" * 16,)).fetchall()
    assert "parts_by_hash" in plan[0][3]
    connection.close()


def test_a_migration_that_fails_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(store).close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(migrations.store, "_migrations", list(migrations.store._migrations))

    @migrations.store(name="breaks")
    def breaks(db: Database) -> None:
        db.execute("CREATE TABLE half (a)")
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        open_store(store)
    monkeypatch.undo()
    connection = open_store(store)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


def test_eight_processes_that_open_the_same_new_store_at_once_all_succeed(store: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from reef.records.writer import Writer; from reef.records import rows\n"
        "w = Writer(Path(sys.argv[1]))\n"
        "w.submit(lambda c: rows.add_event(c, 'engine_changed', None, {'n': int(sys.argv[2])})).result(30); w.close()"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(store), str(n)]) for n in range(8)]
    assert [process.wait(60) for process in running] == [0] * 8
    assert sorted(event["ids"]["n"] for event in Reader(store).events()) == list(range(8))
    connection = open_store(store)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    assert connection.execute("SELECT count(*) FROM _sqlite_migrations").fetchone() == (SCHEMA_VERSION,)
    connection.close()


def test_eight_processes_that_open_a_store_of_an_older_reef_at_once_migrate_it_once(store: Path) -> None:
    connection = sqlite3.connect(store)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrations.store.apply(Database(connection), stop_before="m002_when_a_sessions_process_started")
    connection.execute(
        "INSERT INTO events (at, kind, ids_json) VALUES ('2026-01-01T00:00:00.000Z', 'engine_changed', '{}')"
    )
    connection.commit()
    connection.close()
    code = "import sys; from pathlib import Path; from reef.records.schema import open_store\n"
    code += "open_store(Path(sys.argv[1])).close()"
    running = [subprocess.Popen([sys.executable, "-c", code, str(store)]) for _ in range(8)]
    assert [process.wait(60) for process in running] == [0] * 8
    connection = open_store(store)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM _sqlite_migrations").fetchone() == (SCHEMA_VERSION,)
    assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)
    connection.close()
    with sqlite3.connect(store.with_name("reef.db.schema-1")) as copy:
        assert copy.execute("SELECT count(*) FROM events").fetchone() == (1,)
    copy.close()


def test_opening_gives_up_with_a_reason_while_another_process_holds_the_lock(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_TIMEOUT_S", 0.2)
    with schema._exclusive(store):
        with pytest.raises(Unavailable, match="still opening"):
            open_store(store)
    open_store(store).close()


def test_reading_loads_neither_sqlite_utils_nor_a_web_stack() -> None:
    code = (
        "import sys, reef.records.reader\n"
        "slow = {'sqlite_utils', 'click', 'pluggy', 'aiohttp', 'httpx', 'pydantic', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(' '.join(sorted(slow)) or 0)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_folder_or_a_link_to_nothing_in_the_stores_place_is_named(store: Path) -> None:
    store.mkdir()
    with pytest.raises(StoreRefused, match="is a folder, not a record store") as refused:
        open_store(store)
    assert refused.value.hint == f"mv {store} {store}.old"
    store.rmdir()
    store.symlink_to(store.parent / "gone" / "reef.db")
    with pytest.raises(StoreRefused, match=r"is a link to .*gone/reef\.db, which is not there"):
        open_store(store)


def test_a_full_disk_is_said_as_that_and_not_as_a_damaged_store(store: Path) -> None:
    connection = open_store(store)
    connection.execute("PRAGMA max_page_count=1")
    with pytest.raises(sqlite3.OperationalError) as full:
        connection.execute("CREATE TABLE more AS SELECT zeroblob(1000000)")
    connection.close()
    found = refusal(store, full.value)
    assert isinstance(found, Unavailable)
    assert (found.message, found.hint) == (
        f"{store} cannot be written: database or disk is full", f"df -h {store.parent}",
    )  # fmt: skip
