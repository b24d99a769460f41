"""Opening the store: made once, migrated under a lock, refused when it is not ours or newer than we are.

Nothing here imports sqlite-utils: a process that only reads must not pay for it. `open_store` hands over to
`reef.records.migrations` when there is something to make or to change.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reef.errors import Failed, NotFound, Unavailable

APPLICATION_ID = 0x72656566
"""`reef` in ASCII: what `file` and SQLite show for the store."""

SCHEMA_VERSION = 7
"""How many migrations this reef knows; a store says in `user_version` how many it has."""

LOCK_TIMEOUT_S = 60.0
BUSY_TIMEOUT_S = 2.0
"""How long a statement waits for another process's lock before it fails."""

_CACHE_KIB = 4096
"""Pages that a connection keeps. They fill within some thousand calls and are all that the daemon grows by; more of
them spare no processor time, as the system keeps the file's pages too."""
_WAL_LIMIT_BYTES = 64 * 1024 * 1024


class StoreRefused(Failed):
    """The file cannot be used as reef's store: newer, foreign or damaged. Nothing was changed."""

    code = "store_refused"


def open_store(path: Path) -> sqlite3.Connection:
    """Open the store for writing; make or migrate it first when needed.

    Safe when several processes do it at once: they take turns on a lock file beside the store. The connection is in
    autocommit mode (transactions are begun explicitly) and may be handed to one other thread.
    Raises StoreRefused for a newer, foreign or damaged file, Unavailable when another process holds the lock.
    """
    _check_place(path)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _exclusive(path):
        # SQLite gives its side files the mode of the main file, so the mode is set before SQLite sees it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False, cached_statements=256
        )
        with _closed_on_failure(connection, path):
            _prepare(connection, path)
    return connection


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise StoreRefused(f"{path} is a folder, not a record store", f"mv {path} {path}.old")
    if path.is_symlink() and not path.exists():
        raise StoreRefused(f"{path} is a link to {path.readlink()}, which is not there", f"ls -l {path}")


def open_readonly(path: Path, older: bool = False) -> sqlite3.Connection:
    """Open the store for reading only; the daemon may be running or not. `older`: one not migrated yet will do.

    Raises NotFound when there is no store, StoreRefused for a newer, foreign or damaged one, Unavailable for one that
    an older reef made and no daemon has migrated yet.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise NotFound("there is no record store yet", "reef up")
    try:
        connection = _connect_readonly(path)
    except sqlite3.DatabaseError as error:
        raise refusal(path, error) from error
    with _closed_on_failure(connection, path):
        version = _check(connection, path)
        if version < SCHEMA_VERSION and not older:
            raise Unavailable(f"{path} was made by an older reef and is migrated when the daemon starts", "reef up")
    return connection


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Close `connection` when what is done with it fails; SQLite's own errors become reef's refusal of the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        connection.close()
        raise refusal(path, error) from error
    except BaseException:
        connection.close()
        raise


def _connect_readonly(path: Path) -> sqlite3.Connection:
    location = path.absolute().as_uri()

    def connect(mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{location}?{mode}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    try:
        return connect("mode=ro")
    except sqlite3.OperationalError:
        # A reader needs the WAL's side files and makes them when they are not there. Where the folder cannot be
        # written, nobody else can be writing the store either, so it is safe to read it as it is.
        if os.access(path.parent, os.W_OK) or path.with_name(path.name + "-wal").exists():
            raise
        return connect("mode=ro&immutable=1")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = _check(connection, path)
    if version == 0:
        # Both must be set before the first page is written.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT_BYTES}")
    if version < SCHEMA_VERSION:
        from reef.records.migrations import migrate

        migrate(connection, path, version)


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """The store's schema version; 0 for an empty file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (application or tables):
        raise StoreRefused(f"{path} is a SQLite file but not a reef store", "reef paths")
    if version > SCHEMA_VERSION:
        raise StoreRefused(
            f"{path} was written by a newer reef (schema {version}, this one knows {SCHEMA_VERSION})",
            "./install.sh",
        )
    return int(version)


def refusal(path: Path, error: sqlite3.DatabaseError) -> StoreRefused | Unavailable:
    """What reef says instead of SQLite's error about the store at `path`."""
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return Unavailable(f"{path} is locked by another process", "reef status")
    # Errors of the module itself, and not of the library, have no name.
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return Unavailable(f"{path} cannot be written: {error}", f"df -h {path.parent}")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_READONLY")):
        return StoreRefused(f"{path} cannot be used: {error}", f"ls -l {path}")
    return StoreRefused(f"{path} cannot be read as a reef store: {error}", f"sqlite3 {path} .recover")


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold the lock beside the store; a holder that dies lets go of it."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(f"another process is still opening {path}", "reef status") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(handle)
