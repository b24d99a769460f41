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
