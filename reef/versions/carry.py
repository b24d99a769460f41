"""Carrying a version from one reef to another: an archive with a lock of hashes, or a git bundle.

    reef.lock.json      facts of the version, and the SHA-256 and size of every file
    content/<path>      the files; a large file is whole here, not a pointer

Nothing in a file that somebody hands over is believed: names are checked before anything is written, links are refused,
and every byte must have the hash that the lock says.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from reef.errors import InvalidInput, NotFound, Refused, TooLarge
from reef.ids import scenario_name
from reef.versions import large, tree_objects
from reef.versions.child_git import ChildGit, GitFailed
from reef.versions.repository import Repository

LOCK = "reef.lock.json"
FORMAT = "reef-version-1"
COMPONENTS = ("harness", "weights", "config")
_CONTENT = "content/"
_BUNDLE = (b"# v2 git bundle", b"# v3 git bundle")
_MOST_FILES = 5000
_MOST_LOCK = 4 * 1024 * 1024
_MOST_SMALL = 8 * 1024 * 1024
"""Bytes of one file that is not kept as a large one; all of them together may have eight times as many."""
_PIECE = 1024 * 1024
_T = TypeVar("_T")


@dataclass(frozen=True)
class Carried:
    """A version that came in a file: its facts, and path to bytes or, for a large file, to a file on disk."""

    facts: dict[str, Any]
    files: dict[str, bytes | Path] = field(default_factory=dict)

    @property
    def components(self) -> list[str]:
        """The components that it holds."""
        return sorted({path.partition("/")[0] for path in self.files})


def write_archive(repository: Repository, release_id: str, facts: Mapping[str, Any], target: Path) -> None:
    """Write the archive of a release to `target`. Equal content makes equal bytes."""
    places = {path: _place(repository, path, blob) for path, blob in repository.listing(release_id).items()}
    hashes = {path: _hashed(found) for path, found in sorted(places.items())}
    lock = json.dumps({"format": FORMAT, **facts, "files": hashes}, indent=2, ensure_ascii=False).encode() + b"\n"
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        add(archive, LOCK, lock)
        for path, found in sorted(places.items()):
            add(archive, _CONTENT + path, found)


def add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> None:
    """Put one plain file into an archive, without anything of this machine in its header."""
    entry = tarfile.TarInfo(name)
    entry.mode = 0o644
    if isinstance(content, bytes):
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        return
    entry.size = content.stat().st_size
    with content.open("rb") as file:
        archive.addfile(entry, file)


def whole_files(repository: Repository, release_id: str) -> dict[str, bytes | Path]:
    """Path to content of every file of a release; a large one as the file that holds it."""
    return {path: _place(repository, path, blob) for path, blob in repository.listing(release_id).items()}


def write_bundle(repository: Repository, release_id: str, scenario: str, target: Path) -> None:
    """Write a git bundle with a release and all that came before it to `target`.

    Raises Refused for a version with large files: a bundle would hold their pointers alone.
    """
    pointers = [path for path in repository.listing(release_id) if large.is_large(path)]
    if pointers:
        raise Refused(f"a bundle does not carry large files, and this version has {pointers[0]}", "leave --bundle away")
    with borrowed(repository, release_id, scenario, target.with_name(f".{target.name}.git")) as git:
        git.run("bundle", "create", "--quiet", str(target.absolute()), "HEAD", f"refs/heads/{scenario_name(scenario)}")


@contextmanager
def borrowed(repository: Repository, release_id: str, scenario: str, place: Path) -> Iterator[ChildGit]:
    """A git repository at `place`, gone afterwards, that has one branch at a release and no objects of its own."""
    ChildGit(place).run("init", "--quiet", "--bare", "--template=", str(place), inside=False)
    try:
        info = place / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_text(f"{repository.path / 'objects'}\n", encoding="utf-8")
        git = ChildGit(place, timeout_s=600)
        branch = f"refs/heads/{scenario_name(scenario)}"
        git.run("update-ref", branch, release_id)
        git.run("symbolic-ref", "HEAD", branch)
        yield git
    finally:
        shutil.rmtree(place, ignore_errors=True)


def read(file: Path, folder: Path) -> Carried:
    """What a file carries; large files are put below `folder`. Raises InvalidInput, TooLarge, Refused."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", f"ls -l {file}") from None
    found = _read_bundle(file, folder) if start.startswith(_BUNDLE) else _read_archive(file, folder)
    strange = [name for name in found.components if name not in COMPONENTS]
    if strange or not found.files:
        what = f"a part {strange[0][:60]!r}, which versions do not have" if strange else "no files"
        raise InvalidInput(f"{file.name} holds {what}", "reef versions export v1")
    tree_objects.nest(dict.fromkeys(found.files, b""))
    return found


def _read_archive(file: Path, folder: Path) -> Carried:
    try:
        with gzip.open(file) as raw, _stepped(lambda: tarfile.open(fileobj=raw, mode="r|")) as archive:
            return _members(archive, file.name, folder)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{file.name} is no archive of a version: {error}", "reef versions export v1") from None


def _stepped(step: Callable[[], _T]) -> _T:
    """What one step of tarfile gives. Raises TarError also for a header in which it trips over a number."""
    try:
        return step()
    except (ValueError, OverflowError) as error:
        raise tarfile.ReadError(str(error)) from None


def _members(archive: tarfile.TarFile, name: str, folder: Path) -> Carried:
    facts: dict[str, Any] = {}
    locked: dict[str, Any] = {}
    files: dict[str, bytes | Path] = {}
    small = 0
    while (entry := _stepped(archive.next)) is not None:
        body = archive.extractfile(entry) if entry.isreg() else None
        if body is None:
            raise InvalidInput(f"{name}: {entry.name[:200]!r} is not a plain file")
        if not locked:
            facts, locked = _lock(name, entry, body, folder)
            continue
        path = entry.name.removeprefix(_CONTENT)
        if path == entry.name or path in files or path not in locked:
            what = "is there twice" if path in files else "is not in its lock"
            raise InvalidInput(f"{name}: {entry.name[:200]!r} {what}")
        tree_objects.nest({path: b""})
        files[path] = _taken(name, path, entry, body, locked[path], folder)
        small += 0 if isinstance(files[path], Path) else entry.size
        if small > 8 * _MOST_SMALL:
            raise TooLarge(f"{name} holds more than {8 * _MOST_SMALL} bytes of small files")
    missing = sorted(locked.keys() - files.keys())
    if missing or not locked:
        raise InvalidInput(f"{name} lacks {missing[0][:200]!r}" if missing else f"{name} has no {LOCK}")
    return Carried(facts, files)


def _lock(name: str, entry: tarfile.TarInfo, body: IO[bytes], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and hashes of the lock, which is the first file."""
    if entry.name != LOCK or entry.size > _MOST_LOCK:
        raise InvalidInput(f"{name} does not begin with a {LOCK} of at most {_MOST_LOCK} bytes")
    try:
        lock = json.loads(body.read())
        locked = {str(path): (str(said["sha256"]), int(said["size"])) for path, said in lock.pop("files").items()}
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidInput(f"{name}: its {LOCK} cannot be read") from None
    if lock.pop("format", None) != FORMAT:
        raise InvalidInput(f"{name} is not of the form {FORMAT}", "reef --version")
    if not 0 < len(locked) <= _MOST_FILES:
        raise InvalidInput(f"{name} holds {len(locked)} files, and 1 to {_MOST_FILES} are taken")
    needed = sum(size for path, (_, size) in locked.items() if large.is_large(path))
    if needed > shutil.disk_usage(folder).free:
        raise TooLarge(f"{name} holds {needed} bytes of large files, and the disk has no place for them")
    return lock, locked


def _taken(
    name: str, path: str, entry: tarfile.TarInfo, body: IO[bytes], said: tuple[str, int], folder: Path
) -> bytes | Path:
    """The content of one file, which must have the size and the hash of the lock."""
    wanted, size = said
    if entry.size != size or (not large.is_large(path) and size > _MOST_SMALL):
        raise InvalidInput(f"{name}: {path} has {entry.size} bytes, which it may not")
    digest = hashlib.sha256()
    place = folder / f"{len(list(folder.iterdir()))}.large" if large.is_large(path) else None
    kept = io.BytesIO() if place is None else place.open("wb")
    with kept:
        while piece := body.read(_PIECE):
            digest.update(piece)
            kept.write(piece)
        content = kept.getvalue() if isinstance(kept, io.BytesIO) else b""
    if digest.hexdigest() != wanted:
        raise InvalidInput(f"{name}: {path} does not have the hash of its {LOCK}")
    return content if place is None else place


def _read_bundle(file: Path, folder: Path) -> Carried:
    place = folder / "bundle.git"
    ChildGit(place).run("init", "--quiet", "--bare", "--template=", str(place), inside=False)
    git = ChildGit(place, timeout_s=300)
    try:
        # git itself then checks every object of what it fetches: its hash, its form and the names in it.
        git.run("config", "fetch.fsckObjects", "true")
        git.run("fetch", "--quiet", "--no-tags", str(file.absolute()), "HEAD:refs/heads/carried")
        release = git.run("rev-parse", "--verify", "refs/heads/carried^{commit}").strip()
        _check_sizes(git.run("ls-tree", "-r", "-l", release), file.name)
        there = Repository(place)
        files = there.files(release)
        facts = there.facts(release)
    except GitFailed as error:
        raise InvalidInput(
            f"{file.name} is no bundle of a version: {error.message}", "reef versions export v1"
        ) from None
    except NotFound as error:
        raise InvalidInput(f"{file.name}: {error.message}", "reef versions export v1") from None
    for path in files:
        if large.is_large(path):
            raise Refused(
                f"{file.name}: {path} is a large file, which a bundle does not carry", "export without --bundle"
            )
    subject = git.run("log", "-1", "--format=%s", release).strip()
    named = {"scenario": facts.get("scenario"), "version": facts.get("number"), "requires": facts.get("requires") or []}
    return Carried({**named, "release_id": release, "summary": subject.partition(": ")[2] or subject}, dict(files))


def _check_sizes(listed: str, name: str) -> None:
    """Raises TooLarge before anything of a bundle is unpacked; `listed` is what `git ls-tree -r -l` says."""
    # mode, type, id, size and, after a tab, the name; a link into another repository has no size.
    sizes = [int(row.split()[3]) for row in listed.splitlines() if row.split()[3].isdigit()]
    if len(sizes) > _MOST_FILES or sum(sizes) > 8 * _MOST_SMALL or max(sizes, default=0) > _MOST_SMALL:
        raise TooLarge(f"{name} holds {len(sizes)} files with {sum(sizes)} bytes, more than a version may")


def _place(repository: Repository, path: str, blob: str) -> bytes | Path:
    body = repository.blob(blob)
    return large.locate(repository.path, body) if large.is_large(path) else body


def _hashed(content: bytes | Path) -> dict[str, Any]:
    if isinstance(content, bytes):
        return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    with content.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "size": content.stat().st_size}


def lock_text(facts: Mapping[str, Any], files: Mapping[str, bytes | Path]) -> bytes:
    """The lock of a plain folder: facts, and the SHA-256 and size of every file in it."""
    hashes = {path: _hashed(found) for path, found in sorted(files.items())}
    return json.dumps({**facts, "files": hashes}, indent=2, ensure_ascii=False).encode() + b"\n"
