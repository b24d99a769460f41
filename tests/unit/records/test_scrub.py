"""What SQLite leaves in the free room of pages in use: it is found and cleared, and nothing else is touched."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

from reef.records import scrub, shrink
from reef.records.writer import Writer
from tests.unit.records.calling import recorded


def grown(writer: Writer) -> None:
    """Rows of many sizes in a random order, so that pages are split and rows move from one to another."""
    draw = random.Random(3)
    numbers = list(range(1, 3000))
    draw.shuffle(numbers)

    def write(conn: sqlite3.Connection) -> None:
        conn.execute("CREATE TABLE texts (sequence INTEGER PRIMARY KEY, text TEXT)")
        for number in numbers:
            word = "secret" if number % 3 else "public"
            conn.execute("INSERT INTO texts VALUES (?, ?)", (number, f"{word}-{number}-" * draw.randint(1, 30)))

    writer.submit(write).result(60)
    writer.submit(lambda conn: conn.execute("DELETE FROM texts WHERE text LIKE 'secret%'")).result(60)
    shrink.give_back(writer, lambda: None)
    shrink.empty_log(writer.path, lambda: None)


def stale_pages(store: Path) -> list[int]:
    handle = os.open(store, os.O_RDONLY)
    try:
        return list(scrub.find(handle))
    finally:
        os.close(handle)


def test_copies_that_secure_delete_leaves_are_cleared_and_every_row_stays(writer: Writer, store: Path) -> None:
    grown(writer)
    # Otherwise this test shows nothing.
    assert b"secret-" in store.read_bytes()
    rows = writer.submit(lambda conn: conn.execute("SELECT * FROM texts").fetchall()).result(60)
    shrink.scrub(store, lambda: None)
    assert writer.submit(lambda conn: conn.execute("SELECT * FROM texts").fetchall()).result(60) == rows
    assert writer.submit(lambda conn: conn.execute("PRAGMA integrity_check").fetchall()).result(60) == [("ok",)]
    shrink.empty_log(store, lambda: None)
    assert b"secret-" not in store.read_bytes()
    assert stale_pages(store) == []


def test_a_connection_that_has_the_pages_in_memory_does_not_bring_the_copies_back(writer: Writer, store: Path) -> None:
    grown(writer)
    writer.submit(lambda conn: conn.execute("SELECT sum(length(text)) FROM texts").fetchall()).result(60)
    shrink.scrub(store, lambda: None)
    writer.submit(lambda conn: conn.execute("UPDATE texts SET text = replace(text, 'public', 'PUBLIC')")).result(60)
    shrink.empty_log(store, lambda: None)
    assert b"secret-" not in store.read_bytes()


def test_calls_are_recorded_while_pages_are_cleared(writer: Writer, store: Path) -> None:
    grown(writer)
    receipts: list[str] = []
    shrink.scrub(store, lambda: receipts.append(recorded(writer)))
    assert receipts and writer.lost == 0
    shrink.empty_log(store, lambda: None)
    assert b"secret-" not in store.read_bytes()
    assert writer.submit(lambda conn: conn.execute("PRAGMA integrity_check").fetchall()).result(60) == [("ok",)]
