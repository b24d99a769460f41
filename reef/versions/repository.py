"""The bare git repository that holds every version's content, one branch a scenario, one commit a version.

Commits are built from objects: no work tree, no index, no hook. The tree of a commit is the content and nothing else,
so equal content has an equal tree id; the facts of a version stand in the message as a `Reef-Version:` trailer. Only
`advance` moves a branch, by compare-and-swap. Nothing here rewrites history.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reef.credentials import clean, clean_json
from reef.errors import Conflict, Failed, NotFound, Unavailable
from reef.ids import scenario_name
from reef.paths import ensure_private
from reef.versions import child_git, large, locks, tree_objects
from reef.versions.child_git import ChildGit, GitFailed
from reef.versions.tree_objects import ATTRIBUTES, TREE_MODE

TRAILER = "Reef-Version: "
DEFAULT_BRANCH = "default"
_NOTHING = "0" * 40
_PARTS = ("HEAD", "objects", "refs")
_FRESH_S = 600.0
_COLLECT_S = 600.0
_HEX = re.compile(r"[0-9a-f]{40}\Z")


class VersionsDamaged(Unavailable):
    """The repository does not hold what it must, or holds it changed."""

    code = "versions_damaged"


class Repository:
    """The versions of one reef home. Safe to call from several threads; every call may touch the disk."""

    def __init__(self, path: Path, say: Callable[[str], None] | None = None, lock_wait_s: float = 5.0) -> None:
        """`path` is `versions.git`. `say` is told in one sentence what was repaired (default: the log)."""
        self.path = path.absolute()
        self._say = say
        self._lock_wait_s = lock_wait_s
        self._guard = threading.RLock()
        self._git = ChildGit(self.path)
        self._objects: Any = None
        self._packs: Any = None
        self._fresh: dict[str, float] = {}
        """Commits of this process that no ref names yet, and when they were made."""

    def ensure(self) -> None:
        """Make the repository, or what of it is not there, and clear what a killed git left. Raises Failed without git.

        Nothing that is there is written over.
        """
        with self._guard:
            if not all((self.path / part).exists() for part in _PARTS):
                ensure_private(self.path.parent)
                self._git.run(
                    "init", "--quiet", "--bare", "--template=", f"--initial-branch={DEFAULT_BRANCH}", str(self.path),
                    inside=False,
                )  # fmt: skip
                # The settings a person's own git in this folder would see.
                self._git.run("config", "core.hooksPath", os.devnull)
                self._git.run("config", "gc.pruneExpire", "never")
            ensure_private(self.path)
            locks.clear(self.path, (), self._lock_wait_s, self._say)
            large.drop_broken_off(self.path)

    # Content

    def commit(
        self,
        files: Mapping[str, bytes | Path],
        facts: Mapping[str, Any],
        parent: str | None = None,
        summary: str = "",
        changes: Sequence[str] | None = None,
    ) -> str:
        """Store one version's content and facts; returns the release id. No ref moves.

        `files` maps paths (`harness/rules/tests.md`) to bytes, or to a file whose content is streamed in. `changes`
        names the top-level folders that `files` holds whole; all others are taken from `parent` by their tree id, so
        nothing of them is read. None, or no parent: `files` is everything. Raises InvalidInput for a path that cannot
        stand in a version.
        """
        written: list[bytes] = []
        with self._guard:
            nested = tree_objects.nest({path: self._kept(path, body) for path, body in files.items()})
            if parent is not None and changes is not None and not nested.keys() <= set(changes):
                strange = ", ".join(sorted(nested.keys() - set(changes)))
                raise Failed(f"a version that changes {', '.join(changes)} holds files of {strange}", "reef logs")
            nested[ATTRIBUTES] = large.ATTRIBUTES
            entries: list[tree_objects.Entry] = []

            def store(kind: bytes, data: bytes) -> bytes:
                written.append(self._store(kind, data))
                return written[-1]

            if changes is not None and parent is not None:
                others = {ATTRIBUTES, *changes}
                entries += [entry for entry in self._root(parent) if entry[2] not in others]
            for name, value in nested.items():
                if isinstance(value, dict):
                    entries.append((tree_objects.write(value, store), TREE_MODE, name))
                else:
                    entries.append((store(b"blob", value), tree_objects.FILE_MODE, name))
            tree = tree_objects.write_entries(entries, store)
            return self._seal(tree, facts, parent, summary, written)

    def republish(self, source: str, facts: Mapping[str, Any], parent: str | None, summary: str = "") -> str:
        """A new release with exactly the content of release `source`: what rollback and promote publish."""
        with self._guard:
            return self._seal(bytes.fromhex(self.content_id(source)), facts, parent, summary, [])

    def content_id(self, release_id: str) -> str:
        """The tree id of a release's content. Raises NotFound."""
        return self._header(release_id)["tree"][0]

    def parent(self, release_id: str) -> str | None:
        """The release before, or None for a base."""
        return next(iter(self._header(release_id).get("parent", [])), None)

    def facts(self, release_id: str) -> dict[str, Any]:
        """What the `Reef-Version:` trailer of a release says."""
        for line in reversed(self._read(release_id, b"commit").decode("utf-8", "replace").splitlines()):
            if line.startswith(TRAILER):
                found = json.loads(line[len(TRAILER) :])
                return found if isinstance(found, dict) else {}
        raise NotFound(f"release {release_id[:12]} carries no version facts", "reef versions list")

    def files(self, release_id: str, folder: str = "") -> dict[str, bytes]:
        """Path to bytes of every file of a release, sorted; only those below `folder` when it is given.

        `.gitattributes` is left out; a large file is its pointer (`large.locate` finds the bytes).
        """
        found = {path: self._read(sha, b"blob") for path, sha in sorted(self.listing(release_id).items())}
        return {path: body for path, body in found.items() if not folder or path.startswith(folder.rstrip("/") + "/")}

    def listing(self, release_id: str) -> dict[str, str]:
        """Path to blob id of every file of a release, without reading the files."""
        found: dict[str, str] = {}

        def walk(tree: str, prefix: str) -> None:
            for sha, mode, name in tree_objects.read_entries(self._read(tree, b"tree")):
                if mode == TREE_MODE:
                    walk(sha.hex(), f"{prefix}{name}/")
                elif mode not in tree_objects.FILE_MODES:
                    raise VersionsDamaged(f"{prefix}{name} of {_short(release_id)} is a link, which no version holds")
                elif prefix or name != ATTRIBUTES:
                    found[prefix + name] = sha.hex()

        walk(self.content_id(release_id), "")
        return found

    def components(self, release_id: str) -> dict[str, str]:
        """Top-level folder to its tree id: `{"harness": …, "weights": …}`."""
        return {name: sha.hex() for sha, mode, name in self._root(release_id) if mode == TREE_MODE}

    def blob(self, blob_id: str) -> bytes:
        """The bytes of one file, by the id that `listing` gives."""
        return self._read(blob_id, b"blob")

    # Refs

    def advance(self, scenario: str, release_id: str, expected: str | None) -> None:
        """Move the branch of `scenario` from `expected` (None: it must not exist) to `release_id`.

        Raises Conflict that names both when the branch is elsewhere; Unavailable when another process holds a lock.
        """
        try:
            self._point(_branch(scenario), release_id, expected or _NOTHING)
        except GitFailed:
            found = self.head(scenario)
            if found == release_id:
                return
            if found == expected:
                raise
            raise Conflict(
                f"scenario {scenario!r} is at {_short(found)}, not at {_short(expected)} as expected",
                "reef versions list",
            ) from None

    def head(self, scenario: str) -> str | None:
        """The release that the branch of `scenario` names, or None before its base."""
        return self._resolve(_branch(scenario))

    def branches(self) -> dict[str, str]:
        """Every scenario that has a branch, with the release that it names."""
        with self._guard:
            said = self._git.run("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")
        return {name: release for release, _, name in (line.partition(" ") for line in said.splitlines())}

    def keep_candidate(self, scenario: str, step: int, release_id: str) -> str:
        """Keep a candidate that is no version under `refs/reef/candidates/<scenario>/<step>`; returns the ref."""
        ref = f"refs/reef/candidates/{scenario_name(scenario)}/{int(step)}"
        self._point(ref, release_id, None)
        return ref

    def keep_pending(self, scenario: str, number: int, release_id: str) -> str:
        """Keep a version that waits for the person under `refs/reef/pending/<scenario>/v<number>`; returns the ref."""
        ref = f"refs/reef/pending/{scenario_name(scenario)}/v{int(number)}"
        self._point(ref, release_id, None)
        return ref

    def drop_candidate(self, scenario: str, step: int) -> None:
        """Let go of a candidate; its objects are there until `collect`."""
        ref = f"refs/reef/candidates/{scenario_name(scenario)}/{int(step)}"
        if self._resolve(ref) is not None:
            with self._guard:
                locks.clear(self.path, (ref,), self._lock_wait_s, self._say)
                self._git.run("update-ref", "--no-deref", "-d", ref)

    def collect(self, releases: Iterable[str]) -> None:
        """Remove every object that nothing reaches: `git gc --prune=now`, and the large files that went with them.

        `releases` stay, named by a ref or not. So do commits that were made a moment ago and whose ref is about to be
        written.
        """
        with self._guard:
            made = time.monotonic() - _FRESH_S
            self._fresh = {name: at for name, at in self._fresh.items() if at > made}
            held = [name for name in {*releases, *self._fresh} if self._is_commit(name)]
            refs = [f"refs/reef/held/{name}" for name in held]
            try:
                for ref, name in zip(refs, held, strict=True):
                    self._git.run("update-ref", "--no-deref", ref, name)
                locks.clear(self.path, (), self._lock_wait_s, self._say)
                ChildGit(self.path, _COLLECT_S).run("gc", "--prune=now", "--quiet")
            finally:
                for ref in refs:
                    self._git.run("update-ref", "--no-deref", "-d", ref)
                self._objects = self._packs = None
            # Only after a collection that went well: a damaged repository would hold less than it should.
            large.drop_unnamed(self.path, self._holds)

    def close(self) -> None:
        """Let go of what is held open."""
        with self._guard:
            self._objects = self._packs = None

    def _point(self, ref: str, release_id: str, expected: str | None) -> None:
        if _HEX.match(release_id) is None:
            raise NotFound(f"{release_id!r} is not a release id of 40 hex digits", "reef versions list")
        with self._guard:
            locks.clear(self.path, (ref,), self._lock_wait_s, self._say)
            self._git.run("update-ref", "--no-deref", ref, release_id, *([] if expected is None else [expected]))
            self._fresh.pop(release_id, None)

    def _holds(self, blob: bytes) -> bool:
        sha = hashlib.sha1(b"blob %d\0%s" % (len(blob), blob), usedforsecurity=False).hexdigest()
        return self._loose(sha).is_file() or self._packed(sha, b"blob") is not None

    def _is_commit(self, name: str) -> bool:
        try:
            self._read(name, b"commit")
        except NotFound:
            return False
        return True

    def _resolve(self, ref: str) -> str | None:
        with self._guard:
            try:
                return self._git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").strip() or None
            except GitFailed as error:
                if error.status == 1:
                    return None
                raise

    # Objects

    def _kept(self, path: str, content: bytes | Path) -> bytes:
        """What git holds of a file: its bytes, or the pointer to a large one."""
        if large.is_large(path):
            return large.store(self.path, content)
        return content if isinstance(content, bytes) else content.read_bytes()

    def _seal(
        self, tree: bytes, facts: Mapping[str, Any], parent: str | None, summary: str, written: list[bytes]
    ) -> str:
        # What is committed cannot be taken out again, so the message is cleaned here, whoever wrote it.
        said = clean("".join(char if char.isprintable() else " " for char in summary))
        subject = " ".join(said.split())[:200] or "version"
        cleaned = clean_json(json.loads(json.dumps(dict(facts))))
        trailer = json.dumps(cleaned, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        who = f"{child_git.NAME} <{child_git.EMAIL}> {int(time.time())} +0000"
        lines = [f"tree {tree.hex()}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
        text = "\n".join([*lines, "", subject, "", TRAILER + trailer, ""])
        commit = self._store(b"commit", text.encode("utf-8", "replace"))
        self._sync([*written, commit])
        self._fresh[commit.hex()] = time.monotonic()
        return commit.hex()

    def _database(self) -> Any:
        if self._objects is None:
            from gitdb import LooseObjectDB  # type: ignore[import-untyped]

            self._objects = LooseObjectDB(str(self.path / "objects"))
        return self._objects

    def _store(self, kind: bytes, data: bytes) -> bytes:
        from gitdb import IStream

        return bytes(self._database().store(IStream(kind, len(data), io.BytesIO(data))).binsha)

    def _sync(self, objects: list[bytes]) -> None:
        """Bring new objects to the disk before the catalog names them."""
        folders: set[Path] = set()
        for sha in set(objects):
            path = self._loose(sha.hex())
            large.sync(path)
            folders.add(path.parent)
        for folder in folders:
            large.sync(folder)

    def _loose(self, sha: str) -> Path:
        return self.path / "objects" / sha[:2] / sha[2:]

    def _read(self, sha: str, kind: bytes) -> bytes:
        """The bytes of one object; asks git itself only for what is found nowhere."""
        if _HEX.match(sha) is None:
            raise NotFound(f"{sha!r} is not a release id of 40 hex digits", "reef versions list")
        with self._guard:
            if self._loose(sha).is_file():
                found, body = self._unpacked(sha)
                if found != kind:
                    raise NotFound(f"{sha[:12]} is not a {kind.decode()}", "reef versions list")
                return body
            if (packed := self._packed(sha, kind)) is not None:
                return packed
            try:
                return self._git.run_bytes("cat-file", kind.decode(), sha)
            except GitFailed:
                raise NotFound(
                    f"there is no {kind.decode()} {sha[:12]} in {self.path.name}", "reef versions list"
                ) from None

    def _packed(self, sha: str, kind: bytes) -> bytes | None:
        """The bytes of an object that `collect` or somebody else has packed: a process for each takes long."""
        from gitdb.db.pack import PackedDB  # type: ignore[import-untyped]
        from gitdb.exc import BadObject  # type: ignore[import-untyped]

        if self._packs is None:
            self._packs = PackedDB(str(self.path / "objects" / "pack"))
        try:
            found = self._packs.stream(bytes.fromhex(sha))
            body = bytes(found.read())
        except (BadObject, OSError, ValueError, zlib.error):
            # Gone meanwhile, or damaged: git says which.
            self._packs = None
            return None
        whole = b"%s %d\0%s" % (found.type, len(body), body)
        right = found.type == kind and hashlib.sha1(whole, usedforsecurity=False).hexdigest() == sha
        return body if right else None

    def _unpacked(self, sha: str) -> tuple[bytes, bytes]:
        """Kind and bytes of a loose object, which must be what its name says."""
        try:
            whole = zlib.decompress(self._loose(sha).read_bytes())
        except (OSError, zlib.error):
            whole = b""
        if hashlib.sha1(whole, usedforsecurity=False).hexdigest() != sha:
            raise VersionsDamaged(f"the object {sha[:12]} of {self.path} is damaged", f"git -C {self.path} fsck")
        head, _, body = whole.partition(b"\0")
        return head.partition(b" ")[0], body

    def _header(self, release_id: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in self._read(release_id, b"commit").decode("utf-8", "replace").splitlines():
            if not line:
                break
            key, _, value = line.partition(" ")
            found.setdefault(key, []).append(value)
        return found

    def _root(self, release_id: str) -> list[tree_objects.Entry]:
        return tree_objects.read_entries(self._read(self.content_id(release_id), b"tree"))


def _branch(scenario: str) -> str:
    return f"refs/heads/{scenario_name(scenario)}"


def _short(release_id: str | None) -> str:
    return release_id[:12] if release_id else "nothing"
