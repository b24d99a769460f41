"""`python -m reef.records.backup FILE`: one archive of database, versions and settings, while the daemon writes or not.

The database is copied by SQLite's backup API inside one read transaction, so it is one moment of it. The refs of the
versions are read before and after that moment begins; when a version was published in between, both are read again.
Objects of git only ever come, so those may be copied later.
"""

from __future__ import annotations

import io
import os
import re
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
import zstandard

from reef import __version__
from reef.credentials import redact
from reef.errors import Conflict, Failed, NotFound, Unavailable
from reef.ids import utc_now
from reef.paths import Paths
from reef.records import archive, plain_settings
from reef.records.archive import Manifest, Steps, Tell
from reef.records.schema import open_readonly, refusal

_LEVEL = 3
_PAGES = 2048
_TRIES = 50
_TRY_S = 0.1
_PASSING = re.compile(r"(^|/)(tmp_|\.new-|\.tmp-)|\.lock$|(^|/)incoming-")
_USER = re.compile(rb"(://)[^/@\s]+@")


def back_up(paths: Paths, target: Path, force: bool, tell: Tell) -> dict[str, Any]:
    """Write the archive to `target` (0600), which appears whole or not at all. Returns what was saved.

    Raises Conflict when it is there and not `force`, NotFound when there is nothing to save or no such folder.
    """
    target = target.absolute()
    if not target.parent.is_dir():
        raise NotFound(f"there is no folder {target.parent}", f"mkdir -p {target.parent}")
    if target.is_dir():
        raise Conflict(f"{target} is a folder; name the file in it", f"reef backup {target}/reef.backup")
    if target.exists() and not force:
        raise Conflict(f"{target} is there already", f"reef backup {target} --force")
    settings, left_out = _settings(paths)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        copy, partial = Path(folder) / archive.DATABASE, Path(folder) / "archive"
        with _moment(paths) as (connection, refs):
            _copy(connection, copy, paths.database, tell)
        manifest = _describe(copy, paths.versions_git, left_out)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            _write(file, manifest, copy, paths.versions_git, refs, settings, tell)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    saved = {"file": str(target), "bytes": target.stat().st_size, "records": manifest.records}
    return {"saved": saved | {"schema": manifest.schema, "left_out": left_out}}


@contextmanager
def _moment(paths: Paths) -> Iterator[tuple[sqlite3.Connection, dict[str, str]]]:
    """A read transaction of the database, and the refs of the versions as they were when it began."""
    connection = open_readonly(paths.database, older=True)
    try:
        for _ in range(_TRIES):
            before = read_refs(paths.versions_git)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if read_refs(paths.versions_git) == before:
                yield connection, before
                return
            connection.execute("ROLLBACK")
            time.sleep(_TRY_S)
        raise Unavailable("versions are published faster than they can be saved", "reef down")
    except sqlite3.DatabaseError as error:
        raise refusal(paths.database, error) from error
    finally:
        connection.close()


def _copy(connection: sqlite3.Connection, target: Path, source: Path, tell: Tell) -> None:
    steps = Steps(tell, "copying the database", max(1, connection.execute("PRAGMA page_count").fetchone()[0]))
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    copy = sqlite3.connect(target)
    try:
        copy.execute("PRAGMA synchronous=OFF")
        connection.backup(copy, pages=_PAGES, progress=lambda _, left, total: steps.at(total - left))
        # A copy is one file, not a file and a log.
        copy.execute("PRAGMA journal_mode=DELETE")
        told = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    finally:
        copy.close()
    if told != "ok":
        raise Failed(f"{source} is damaged, so it is not saved as if it were whole: {told}", "reef doctor")


def _describe(database: Path, versions: Path, left_out: list[str]) -> Manifest:
    copy = sqlite3.connect(database)
    try:
        schema = int(copy.execute("PRAGMA user_version").fetchone()[0])
        records = int(copy.execute("SELECT count(*) FROM records").fetchone()[0])
    finally:
        copy.close()
    size = database.stat().st_size + sum(file.stat().st_size for _, file in _files(versions))
    return Manifest(__version__, schema, utc_now(), size, records, left_out)


def _settings(paths: Paths) -> tuple[str | None, list[str]]:
    if not paths.config_file.is_file():
        return None, []
    try:
        return plain_settings.without_secrets(paths.config_file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise Failed(
            f"{paths.config_file} cannot be read, so nobody knows what is secret in it", "reef doctor"
        ) from None


def _write(
    file: io.BufferedWriter,
    manifest: Manifest,
    database: Path,
    versions: Path,
    refs: dict[str, str],
    settings: str | None,
    tell: Tell,
) -> None:
    steps, done = Steps(tell, "writing the archive", manifest.size), 0
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=min(4, os.cpu_count() or 1))
    with compressor.stream_writer(file, closefd=False) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, archive.MANIFEST, manifest.encoded())
            if settings is not None:
                _add(tar, archive.SETTINGS, settings.encode())
            tar.add(database, archive.DATABASE, filter=_anonymous)
            done += database.stat().st_size
            steps.at(done)
            if versions.is_dir():
                _add(tar, f"{archive.VERSIONS}/packed-refs", packed(refs))
            for name, place in _every_file(versions):
                # A loose object that was packed meanwhile is in a file that `_every_file` comes to later.
                try:
                    body = place.read_bytes() if name == "config" else None
                    if body is not None:
                        _add(tar, f"{archive.VERSIONS}/{name}", _USER.sub(rb"\1", redact(body)[0]))
                    else:
                        tar.add(place, f"{archive.VERSIONS}/{name}", filter=_anonymous)
                    done += place.stat().st_size
                except FileNotFoundError:
                    continue
                steps.at(done)
            _add(tar, archive.END, b"")


def _every_file(versions: Path) -> Iterator[tuple[str, Path]]:
    """The files of the repository, looked for again until a look finds nothing new."""
    given: set[str] = set()
    while found := [(name, place) for name, place in _files(versions) if name not in given]:
        for name, place in found:
            given.add(name)
            yield name, place


def _files(versions: Path) -> Iterator[tuple[str, Path]]:
    for name in ("HEAD", "config", "description"):
        if (versions / name).is_file():
            yield name, versions / name
    for folder in ("objects", "lfs", "info"):
        for place in sorted((versions / folder).rglob("*")):
            name = place.relative_to(versions).as_posix()
            if not _PASSING.search(name) and place.is_file() and not place.is_symlink():
                yield name, place


def read_refs(versions: Path) -> dict[str, str]:
    """Every ref and the object that it names: packed ones, and over them those in files of their own."""
    found: dict[str, str] = {}
    table = versions / "packed-refs"
    for line in table.read_text(encoding="utf-8").splitlines() if table.is_file() else ():
        if line[:1] not in ("#", "^") and " " in line:
            value, _, name = line.partition(" ")
            found[name] = value
    for place in (versions / "refs").rglob("*"):
        if place.suffix != ".lock" and place.is_file():
            try:
                value = place.read_text(encoding="utf-8").strip()
            except FileNotFoundError:
                # Packed at this moment; whoever compares two readings reads again.
                continue
            if re.fullmatch("[0-9a-f]{40,64}", value):
                found[place.relative_to(versions).as_posix()] = value
    return found


def packed(refs: dict[str, str]) -> bytes:
    """Refs as git keeps many of them in one file."""
    return "".join(["# pack-refs with: sorted \n", *(f"{refs[name]} {name}\n" for name in sorted(refs))]).encode()


def _add(tar: tarfile.TarFile, name: str, body: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(body), 0o600
    tar.addfile(member, io.BytesIO(body))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whose file it was and when is nobody's business on another machine."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def main(arguments: list[str]) -> int:
    """`FILE [--force]`; returns the exit status."""
    (file,) = [argument for argument in arguments if argument != "--force"]
    return archive.run(lambda tell: back_up(Paths.from_environ(), Path(file), "--force" in arguments, tell))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
