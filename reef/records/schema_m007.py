"""Statements of the seventh migration, a tuple for each subject; `reef.records.migrations` runs them."""

from __future__ import annotations

M007_PINS = (
    # The version that stays installed whatever is served; adapter '' stands for every agent of the scenario.
    """CREATE TABLE pins (
        sequence INTEGER PRIMARY KEY,
        scenario TEXT NOT NULL,
        adapter TEXT NOT NULL,
        version INTEGER NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (scenario, adapter)
    )""",
)

M007_PROPOSALS = (
    # Changes that agents propose; one without a step waits. `freed` says that a broken-off step gave it back before.
    """CREATE TABLE proposals (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        scenario TEXT NOT NULL,
        number INTEGER NOT NULL,
        reason TEXT NOT NULL,
        mutations_json TEXT NOT NULL,
        session TEXT,
        release_id TEXT,
        source TEXT NOT NULL,
        created_at TEXT NOT NULL,
        step INTEGER,
        freed INTEGER NOT NULL DEFAULT 0,
        UNIQUE (scenario, number)
    )""",
    "CREATE INDEX proposals_waiting ON proposals(scenario) WHERE step IS NULL",
)
