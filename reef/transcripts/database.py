"""The databases in which some agents keep their sessions.

One is copied before it is opened, because SQLite writes beside a database even when it only reads.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_START = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    """Whether a file is a SQLite database, by its first bytes."""
    with path.open("rb") as source:
        return source.read(len(_START)) == _START


def tables(path: Path) -> set[str]:
    """The names of a database's tables; none when it cannot be read."""
    try:
        with opened(path) as connection:
            return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError:
        return set()


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database, open; gone again afterwards."""
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        copy = Path(folder) / "copy.db"
        for ending in ("", "-wal"):
            if (source := path.with_name(path.name + ending)).is_file():
                shutil.copyfile(source, copy.with_name(copy.name + ending))
        with closing(sqlite3.connect(copy)) as connection:
            yield connection
