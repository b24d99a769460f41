"""Statements of the sixth migration, a tuple for each subject; `reef.records.migrations` runs them."""

from __future__ import annotations

M006_FORGET = (
    # Set when retention took the bodies; the row, its state and its receipt stay.
    "ALTER TABLE records ADD COLUMN pruned_at TEXT",
    # Counters that survive restarts, named in `reef.records.totals`.
    """CREATE TABLE totals (
        sequence INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        value INTEGER NOT NULL
    )""",
    # A record that a task is made of keeps its bodies for as long as the task is there.
    """CREATE TABLE task_records (
        sequence INTEGER PRIMARY KEY,
        task TEXT NOT NULL,
        record INTEGER NOT NULL REFERENCES records(sequence)
    )""",
    "CREATE INDEX task_records_by_record ON task_records(record)",
    # What a stop must not leave half done: ids and numbers only, and gone when all is forgotten.
    """CREATE TABLE forgettings (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        at TEXT NOT NULL,
        plan_json TEXT NOT NULL
    )""",
    """CREATE TABLE to_forget (
        sequence INTEGER PRIMARY KEY,
        forgetting INTEGER NOT NULL REFERENCES forgettings(sequence),
        record BLOB NOT NULL
    )""",
)
