"""`python -m reef.records.restore FILE`: put a backup in the place of what a home holds, which is kept beside it.

It works without the daemon and holds the daemon's lock, so that none starts meanwhile. Everything is unpacked and
checked before anything is moved. The moves are written down first, in `restore.json`: whoever comes next, this program
or the daemon's start, finishes what an interruption left. A folder that was kept can be given instead of a file, which
is the way back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zstandard

from reef.errors import Conflict, Failed, InvalidInput, NotFound
from reef.paths import Paths, ensure_private
from reef.records import archive
from reef.records.archive import Manifest, Steps, Tell
from reef.records.schema import SCHEMA_VERSION, StoreRefused, open_readonly
from reef.records.swap import KEPT, begin, finish

_STAGED = ".restore-"
_BLOCK = 1 << 20


def look(source: Path) -> dict[str, Any]:
    """What `source` holds, without unpacking it. Raises NotFound, InvalidInput, StoreRefused."""
    if source.is_dir():
        return {"backup": {"made_at": source.name.removeprefix(KEPT), "folder": True}}
    with _opened(source) as tar:
        manifest = archive.read_manifest(tar)
    _refuse_newer(source, manifest.schema, manifest.reef)
    return {
        "backup": {"made_at": manifest.made_at, "records": manifest.records, "reef": manifest.reef, "folder": False}
    }


def restore(paths: Paths, source: Path, tell: Tell) -> dict[str, Any]:
    """Put `source` in the place of what is there. Returns where that is kept now.

    Raises Conflict while the daemon runs, StoreRefused for a backup of a newer reef, Failed for a damaged one; nothing
    was changed then.
    """
    source = source.absolute()
    ensure_private(paths.data)
    ensure_private(paths.state)
    with _no_daemon(paths):
        finish(paths)
        for stale in paths.data.glob(f"{_STAGED}*"):
            shutil.rmtree(stale)
        at = _stamp(paths)
        if source.is_dir():
            staged, left_out = _kept_folder(paths, source), []
            _check(staged / archive.DATABASE, source)
        else:
            staged = paths.data / f"{_STAGED}{at}"
            left_out = _unpack(source, staged, paths, tell)
        # What is unpacked must be on the disk before anything makes room for it.
        os.sync()
        kept = begin(paths, staged, f"{KEPT}{at}")
        finish(paths)
        return {"restored": {"kept": str(kept) if kept.exists() else None, "left_out": left_out}}


@contextmanager
def _no_daemon(paths: Paths) -> Iterator[None]:
    """Hold the daemon's lock. Raises Conflict when a daemon has it."""
    handle = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("the daemon of this home runs, and a restore works only without it", "reef down") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _opened(source: Path) -> Iterator[tarfile.TarFile]:
    if not source.is_file():
        raise NotFound(f"there is no file {source}", f"ls -l {source.parent}")
    with source.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                yield tar
        except zstandard.ZstdError as error:
            raise Failed(f"{source} is damaged: {error}", f"ls -l {source}") from None
        except (tarfile.TarError, EOFError):
            raise InvalidInput(f"{source} is not a whole backup of reef", f"ls -l {source}") from None


def _unpack(source: Path, staged: Path, paths: Paths, tell: Tell) -> list[str]:
    with _opened(source) as tar:
        manifest = archive.read_manifest(tar)
        _refuse_newer(source, manifest.schema, manifest.reef)
        free = shutil.disk_usage(paths.data).free
        if free < manifest.size:
            message = f"{paths.data} has {free:,} bytes free and the backup needs {manifest.size:,}"
            raise Failed(message, f"df -h {paths.data}")
        try:
            _extract(tar, staged, manifest, tell)
            _check(staged / archive.DATABASE, source)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
    return manifest.left_out


def _extract(tar: tarfile.TarFile, staged: Path, manifest: Manifest, tell: Tell) -> None:
    steps, done = Steps(tell, "unpacking", manifest.size), 0
    ensure_private(staged)
    whole = False
    while (member := tar.next()) is not None:
        whole = member.name == archive.END
        if whole:
            continue
        if not archive.is_known(member):
            raise InvalidInput(f"the backup holds {member.name!r}, which no backup of reef has")
        target = staged / member.name
        for folder in reversed([folder for folder in target.parents if folder.is_relative_to(staged)]):
            folder.mkdir(mode=0o700, exist_ok=True)
        body = tar.extractfile(member)
        assert body is not None
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            while block := body.read(_BLOCK):
                file.write(block)
                done += len(block)
                steps.at(done)
    if not whole:
        raise InvalidInput("the backup is cut off: its end is not there")
    if (staged / archive.VERSIONS).is_dir():
        for name in ("refs", "refs/heads", "objects/info", "objects/pack"):
            ensure_private(staged / archive.VERSIONS / name)


def _check(database: Path, source: Path) -> None:
    """Raises StoreRefused or Failed when the database of a backup is not one that this reef can go on with."""
    if not database.is_file():
        raise InvalidInput(f"{source} holds no record store", "reef paths")
    try:
        connection = open_readonly(database, older=True)
    except StoreRefused as error:
        hint = error.hint if error.hint == "./install.sh" else f"ls -l {source}"
        raise StoreRefused(error.message.replace(str(database), str(source)), hint) from None
    try:
        told = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        told = str(error)
    finally:
        connection.close()
    if told != "ok":
        raise Failed(f"the record store in {source} is damaged: {told}", f"ls -l {source}")


def _refuse_newer(source: Path, schema: int, version: str) -> None:
    if schema > SCHEMA_VERSION:
        message = (
            f"{source} was made by reef {version} (schema {schema}), this one knows schemas up to {SCHEMA_VERSION}"
        )
        raise StoreRefused(message, "./install.sh")


def _kept_folder(paths: Paths, source: Path) -> Path:
    if source.parent != paths.data or not source.name.startswith(KEPT):
        message = f"{source} is no folder that a restore kept: those are {paths.data / KEPT}…"
        raise InvalidInput(message, f"ls -d {paths.data / KEPT}*")
    return source


def _stamp(paths: Paths) -> str:
    """The time now as a part of a name that is not taken."""
    now = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
    names = (now, *(f"{now}-{number}" for number in range(2, 1000)))
    return next(name for name in names if not (paths.data / f"{KEPT}{name}").exists())


def main(arguments: list[str]) -> int:
    """`FILE [--look]`; returns the exit status."""
    (file,) = [argument for argument in arguments if argument != "--look"]
    if "--look" in arguments:
        return archive.run(lambda tell: look(Path(file)))
    return archive.run(lambda tell: restore(Paths.from_environ(), Path(file), tell))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
