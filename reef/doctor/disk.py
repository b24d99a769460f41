"""`python -m reef.doctor.disk`: what of a home takes how much of the disk, and what keeps each from growing on.

The record store's file is told apart into what its rows hold; that asks SQLite for lengths only, never for the bodies.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reef import config
from reef.daemon.logs import LIMIT_BYTES
from reef.errors import ReefError
from reef.paths import Paths
from reef.records import totals
from reef.records.archive import Tell, run
from reef.records.schema import open_readonly
from reef.records.swap import KEPT

_ROW_BYTES = 48
"""About what a row of events takes besides its texts."""


@dataclass(frozen=True)
class Share:
    """One line of `reef disk`."""

    name: str
    size: int
    limit: int | None
    """Bytes that it may grow to; None where there is no limit in bytes."""
    about: str
    path: str


def shares(paths: Paths) -> Iterator[Share]:
    """Everything that a home holds on the disk, each byte once."""
    yield from _store(paths)
    git = _taken(paths.versions_git)
    large = _taken(paths.versions_git / "lfs")
    yield Share("versions", git - large, None, "versions of harnesses, in git", str(paths.versions_git))
    yield Share("lfs", large, None, "weights of versions", str(paths.versions_git / "lfs"))
    for name, place, about in (
        ("steps", paths.steps, "what steps wrote: calls, episodes, logs"),
        ("harness", paths.harness, "installed harnesses"),
        ("agents", paths.agents, "installed agents and Node"),
        ("models", paths.models, "models on this machine"),
        ("cache", paths.cache, "can be deleted at any time"),
    ):
        yield Share(name, _taken(place), None, about, str(place))
    logs = sum(_taken(place) for place in paths.state.glob("*.log*"))
    yield Share("logs", logs, LIMIT_BYTES, "the daemon's log, five files in turn", str(paths.daemon_log))
    copies = [*paths.data.glob(f"{paths.database.name}.schema-*"), *paths.data.glob(f"{KEPT}*")]
    about = "copies from before an upgrade or a restore; delete them when all is well"
    yield Share("backups", sum(_taken(place) for place in copies), None, about, str(paths.data))


def _store(paths: Paths) -> Iterator[Share]:
    path = str(paths.database)
    whole = _taken(paths.database)
    try:
        limit = config.load(paths=paths).settings.records.max_bytes
    except ReefError:
        # What is wrong with the settings is `reef doctor`'s to say.
        limit = None
    held = _rows(paths.database) if whole else {}
    if held:
        pruned = held.pop("pruned")
        about = "requests and replies, each part once, compressed"
        about += f"; those of {pruned:,} records are pruned" if pruned else ""
        yield Share("bodies", held["bodies"], limit, about, path)
        yield Share("index", held["index"], None, "what search looks in", path)
        yield Share("events", held["events"], None, "what happened, for 30 days", path)
        yield Share("unused", held["unused"], None, "pages that new rows will take", path)
    rest = max(0, whole - sum(held.values()))
    yield Share("rows", rest, None, "records, reports, asks, steps and SQLite's own" if held else "the store", path)
    log = sum(_taken(place) for place in paths.data.glob(f"{paths.database.name}-*"))
    yield Share("log", log, None, "SQLite's write-ahead log and its index", f"{path}-wal")


def _rows(path: Path) -> dict[str, int]:
    """Bytes in the store by what they are, and how many records are `pruned`; empty where it cannot be read."""
    try:
        connection = open_readonly(path, older=True)
    except ReefError:
        return {}
    try:
        return {
            "bodies": _one(connection, "SELECT sum(length(body)) FROM parts"),
            "index": _index(connection),
            "events": _one(
                connection,
                f"SELECT sum({_ROW_BYTES} + length(at) + length(kind) + length(ids_json)"
                " + coalesce(length(scenario), 0)) FROM events",
            ),
            "pruned": _pruned(connection),
            "unused": _one(connection, "PRAGMA freelist_count") * _one(connection, "PRAGMA page_size"),
        }
    except sqlite3.DatabaseError:
        return {}
    finally:
        connection.close()


def _pruned(connection: sqlite3.Connection) -> int:
    """How many records have lost their bodies to the limit; a store that waits for its migration cannot say."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'totals'").fetchone():
        return 0
    return totals.read(connection).get(totals.PRUNED_RECORDS, 0)


def _index(connection: sqlite3.Connection) -> int:
    """Bytes of every full-text index, in whichever of FTS5's own tables they are."""
    made = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").fetchall()
    total = 0
    for (name,) in made:
        for table in (f"{name}_data", f"{name}_content", f"{name}_docsize"):
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            if columns:
                lengths = " + ".join(f'coalesce(length("{column}"), 0)' for column in columns)
                total += _one(connection, f'SELECT sum({lengths}) FROM "{table}"')
    return total


def _one(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0] or 0)


def _taken(place: Path) -> int:
    """Bytes of a file, or of all files below a folder; links are not followed."""
    if not place.is_dir() or place.is_symlink():
        return place.lstat().st_size if place.exists() or place.is_symlink() else 0
    total = 0
    for folder, _, files in os.walk(place):
        for name in files:
            try:
                total += os.lstat(Path(folder) / name).st_size
            except FileNotFoundError:
                # Removed while it was looked for.
                continue
    return total


def main() -> int:
    """One JSON object: the shares, and what is free."""
    paths = Paths.from_environ()

    def look(tell: Tell) -> dict[str, Any]:
        place = next(folder for folder in (paths.data, *paths.data.parents) if folder.exists())
        found = [asdict(share) for share in shares(paths)]
        total = sum(share["size"] for share in found)
        return {"disk": {"shares": found, "total": total, "free": shutil.disk_usage(place).free}}

    return run(look)


if __name__ == "__main__":
    sys.exit(main())
