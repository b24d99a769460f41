"""The versions: whether what each scenario serves can be had from git, and which built-in entries were edited."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from reef.daemon.upgrading import renewal
from reef.doctor.check import Check, counted, size
from reef.errors import NotFound, ReefError
from reef.harness.adapter import bases
from reef.paths import Paths
from reef.records.schema import open_readonly
from reef.versions import catalog, large
from reef.versions.catalog import Version
from reef.versions.child_git import ChildGit
from reef.versions.repository import Repository

WHOLE_BYTES = 256 * 1024 * 1024
"""Up to this size git reads every object; of a larger repository only what is served is read."""
_NAMED = 3
_FSCK_S = 300.0


def check(paths: Paths) -> Iterator[Check]:
    """Every check of the versions; without any there is nothing to find."""
    try:
        connection = open_readonly(paths.database)
    except ReefError:
        # The check of the store has said it.
        return
    try:
        heads = list(_heads(connection))
        if not paths.versions_git.is_dir():
            yield _none(paths, heads)
            return
        repository = Repository(paths.versions_git)
        yield served(repository, heads, len(catalog.unfinished(connection)))
        yield objects(repository)
        yield built_in(paths, connection, repository, heads)
    except ReefError as error:
        yield Check("versions", "bad", error.message, error.hint)
    except sqlite3.DatabaseError:
        return
    finally:
        connection.close()


def _none(paths: Paths, heads: list[Version]) -> Check:
    if not heads:
        return Check("versions", "ok", "there are no versions yet; the first start makes them")
    sentence = f"{paths.versions_git} is gone, and {counted(len(heads), 'scenario')} have their versions in it"
    return Check("versions", "bad", sentence, "reef restore FILE")


def served(repository: Repository, heads: list[Version], unfinished: int = 0) -> Check:
    """Whether branch, catalog and content of every scenario agree, large files among it."""
    problems = []
    whole: set[str] = set()
    for head in heads:
        problem = _problem(repository, head, whole)
        if problem is not None:
            problems.append(f"scenario {head.scenario}: {problem}")
    if problems:
        more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
        sentence = "; ".join(problems[:_NAMED]) + more
        return Check("versions", "bad", sentence, "reef restore FILE")
    if unfinished:
        sentence = f"{counted(unfinished, 'version')} of an earlier daemon wait to be finished by the next start"
        return Check("versions", "warn", sentence, "reef up")
    return Check("versions", "ok", f"what {counted(len(heads), 'scenario')} serve can be had, and every branch fits")


def _problem(repository: Repository, head: Version, whole: set[str]) -> str | None:
    try:
        at = repository.head(head.scenario)
        if at != head.release_id:
            return f"its branch is at {at[:12] if at else 'nothing'}, but v{head.number} is served"
        if head.content_id in whole:
            return None
        for path, body in repository.files(head.release_id).items():
            if large.is_large(path):
                large.locate(repository.path, body)
        whole.add(head.content_id)
    except NotFound as error:
        return f"v{head.number} is not whole: {error.message}"
    except ReefError as error:
        return error.message
    return None


def objects(repository: Repository) -> Check:
    """What git's own check says of every object."""
    held = sum(file.stat().st_size for file in (repository.path / "objects").rglob("*") if file.is_file())
    if held > WHOLE_BYTES:
        return Check("git", "ok", f"{repository.path.name} takes {size(held)}; git fsck reads all of it, at your word")
    try:
        told = ChildGit(repository.path, _FSCK_S).run("fsck", "--strict", "--full", "--no-dangling", "--no-progress")
    except ReefError as error:
        return Check("git", "bad", f"the versions are damaged: {error.message}", f"git -C {repository.path} fsck")
    if told.strip():
        first = told.strip().splitlines()[0]
        return Check("git", "warn", f"git says of the versions: {first}", f"git -C {repository.path} fsck")
    return Check("git", "ok", f"git finds all {size(held)} of the versions whole")


def built_in(paths: Paths, connection: sqlite3.Connection, repository: Repository, heads: list[Version]) -> Check:
    """Which entries that reef ships were edited, so that no upgrade touches them."""
    shipped = bases(paths)
    kept: dict[str, list[str]] = {}
    stale = []
    for head in heads:
        found = renewal(repository, head, catalog.bases(connection, head.scenario), shipped)
        if found.kept:
            kept[head.scenario] = list(found.kept)
        if found.reason:
            stale.append(head.scenario)
    if kept:
        named = "; ".join(f"{name}: {', '.join(ids)}" for name, ids in list(kept.items())[:_NAMED])
        sentence = f"built-in entries that were edited are kept, and get no mends of reef: {named}"
        first = next(iter(kept))
        number = next(head.number for head in heads if head.scenario == first)
        return Check("built-in", "warn", sentence, f"reef versions diff base v{number} -s {first}")
    if stale:
        sentence = f"the built-in entries of {counted(len(stale), 'scenario')} are of another package"
        return Check("built-in", "warn", sentence + "; the next start brings them up to date", "reef down && reef up")
    return Check("built-in", "ok", "every scenario in use has the built-in entries of this package")


def _heads(connection: sqlite3.Connection) -> Iterator[Version]:
    names = connection.execute("SELECT name FROM scenarios WHERE state = 'ready' ORDER BY sequence").fetchall()
    for (name,) in names:
        head = catalog.head(connection, name)
        if head is not None:
            yield head
