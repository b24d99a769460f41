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

M006_SEARCH = (
    # `columnsize=0`: nothing is ranked by length, and a row less is kept for each record.
    """CREATE VIRTUAL TABLE search_texts USING fts5(request, reply, tools, content='', detail=column, columnsize=0,
        tokenize='unicode61 remove_diacritics 2')""",
    # SQLite would merge hundreds of pages within one statement; the pass that fills the index does it in small pieces.
    "INSERT INTO search_texts (search_texts, rank) VALUES ('automerge', 0)",
    # Every record up to `upto` is in the index, unless `search_marks` says otherwise: 0 not yet, 1 to be looked at
    # again, 2 taken out. `extraction` is that of `reef.records.texts` when the index was made.
    """CREATE TABLE search_state (
        sequence INTEGER PRIMARY KEY CHECK (sequence = 1),
        extraction INTEGER NOT NULL,
        upto INTEGER NOT NULL
    )""",
    "INSERT INTO search_state (sequence, extraction, upto) VALUES (1, 0, 0)",
    "CREATE TABLE search_known (hash INTEGER PRIMARY KEY, record INTEGER NOT NULL)",
    "CREATE TABLE search_marks (record INTEGER PRIMARY KEY, mark INTEGER NOT NULL)",
    "CREATE INDEX search_marks_due ON search_marks(record) WHERE mark < 2",
    "CREATE TABLE search_cut (record INTEGER PRIMARY KEY)",
    """CREATE TABLE search_links (
        record INTEGER NOT NULL,
        earlier INTEGER NOT NULL,
        PRIMARY KEY (record, earlier)
    ) WITHOUT ROWID""",
    "CREATE INDEX search_links_by_earlier ON search_links(earlier)",
    # The sequence of a last row that was deleted is given out again.
    """CREATE TRIGGER record_left_the_search AFTER DELETE ON records BEGIN
        DELETE FROM search_marks WHERE record = OLD.sequence;
        UPDATE search_state SET upto = min(upto, coalesce((SELECT max(sequence) FROM records), 0));
    END""",
)
M006_LISTS = (
    "DROP INDEX records_by_session",
    "CREATE INDEX records_by_session ON records(session, scenario) WHERE session IS NOT NULL",
    "CREATE INDEX records_by_model ON records(model COLLATE NOCASE)",
    "CREATE INDEX records_that_failed ON records(sequence) WHERE state IN ('failed', 'interrupted')",
    "CREATE INDEX records_that_were_cut ON records(sequence) WHERE prompt_cut = 1",
    "CREATE INDEX reports_by_score ON reports(score) WHERE score IS NOT NULL",
)
