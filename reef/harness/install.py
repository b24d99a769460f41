"""Installing a harness version on this machine: the files an agent reads, what they must be, and the agent's wrapper.

    harness/<scenario>/<adapter>/tree/          what the agent reads, as rendered
    harness/<scenario>/<adapter>/home/          the agent's config home: links into the tree, its own state
    harness/<scenario>/<adapter>/install.json   version, and the hash of every file of the tree

The agent's own configuration is never touched. An install that changes nothing writes nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, NotFound, Refused
from reef.harness import own_places
from reef.harness.adapter_file import Adapter
from reef.harness.tree import relative_path
from reef.ids import scenario_name, utc_now
from reef.paths import Paths, ensure_private, write_atomic
from reef.text import one_line

MARK = "# Written by reef; a new install repairs it."
_XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
_FACTS = {"scenario": str, "adapter": str, "version": int, "release_id": str, "content_id": str, "files": dict}
SET_BY_WRAPPER = "REEF_WRAPPER_SET"
"""Names the variables that the wrapper script itself set, which the agent must not see."""


@dataclass(frozen=True)
class Install:
    """What is installed of one scenario for one agent."""

    scenario: str
    adapter: str
    version: int
    release_id: str
    content_id: str
    files: dict[str, str]
    """Path in the tree to the SHA-256 of its content, hex."""
    folder: Path
    """Holds `tree` and `home`."""

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def verify(self) -> None:
        """Check every file of the tree. Raises Refused that names the first one that was changed, added or removed."""
        found = _hashes(self.tree)
        for path in sorted(found.keys() | self.files.keys()):
            if found.get(path) == self.files.get(path):
                continue
            what = "was removed" if path not in found else "was added" if path not in self.files else "was changed"
            again = f"reef versions install v{self.version} --adapter {self.adapter} --scenario {self.scenario}"
            raise Refused(f"{one_line(str(self.tree / path), 4096)} {what} after the install", again)


@dataclass(frozen=True)
class Done:
    """The outcome of an install."""

    install: Install
    wrapper: Path
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """`{"scenario", "adapter", "version", "release_id", "path", "wrapper", "changed", "files"}`."""
        return {
            "scenario": self.install.scenario,
            "adapter": self.install.adapter,
            "version": self.install.version,
            "release_id": self.install.release_id,
            "path": str(self.install.folder),
            "wrapper": str(self.wrapper),
            "changed": self.changed,
            "files": sorted(self.install.files),
        }


def install_tree(
    paths: Paths,
    scenario: str,
    adapter: Adapter,
    version: int,
    files: Mapping[str, bytes],
    release_id: str,
    content_id: str,
    left_out: Sequence[str] = (),
) -> Done:
    """Make `files` (what `render` gives) the installed tree of a scenario for one agent, and write the agent's wrapper.

    `left_out` says in sentences what of the version the agent cannot be given. The new tree is complete beside the old
    one before it takes its place. Raises InvalidInput for a path that leaves the tree, Refused when the wrapper's place
    holds a file that is not reef's.
    """
    folder = paths.harness / scenario_name(scenario) / adapter.name
    wanted = {relative_path(path, "the version"): hashlib.sha256(body).hexdigest() for path, body in files.items()}
    _refuse_twins(wanted)
    wrapper = paths.bin / f"reef-{adapter.name}"
    own_places.note("installed", adapter, paths)
    with locked(folder):
        script_changed = _write_wrapper(wrapper, adapter, paths)
        last_changed = _write_text(paths.last_install, scenario)
        made = Install(scenario, adapter.name, version, release_id, content_id, wanted, folder)
        if _recorded(folder) == _facts(made) and _hashes(made.tree) == wanted:
            return Done(made, wrapper, script_changed or last_changed)
        if _hashes(made.tree) != wanted:
            _swap(made.tree, files)
        facts = _facts(made) | {"left_out": list(left_out), "installed_at": utc_now()}
        write_atomic(folder / "install.json", json.dumps(facts, indent=2).encode())
    return Done(made, wrapper, True)


def installed(paths: Paths, scenario: str, adapter: str) -> Install:
    """What is installed of `scenario` for `adapter`. Raises NotFound with the command that installs it."""
    folder = paths.harness / scenario_name(scenario) / adapter
    facts = _recorded(folder)
    if facts is None:
        raise NotFound(
            f"no harness of scenario {scenario} is installed for {adapter}",
            f"reef versions install --adapter {adapter} --scenario {scenario}",
        )
    return Install(**{name: facts[name] for name in _FACTS}, folder=folder)


def installed_versions(paths: Paths, adapter: str) -> list[dict[str, Any]]:
    """Every scenario that is installed for `adapter`: `{"name", "version"}`, by name."""
    found: list[dict[str, Any]] = []
    for file in sorted(paths.harness.glob(f"*/{adapter}/install.json")):
        facts = _recorded(file.parent)
        if facts is not None:
            found.append({"name": facts["scenario"], "version": facts["version"]})
    return found


@contextmanager
def locked(folder: Path, shared: bool = False) -> Iterator[None]:
    """Hold the lock of one install: alone while it is changed, shared while an agent is being started from it."""
    ensure_private(folder)
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def home_variables(paths: Paths, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which another process finds the home that `paths` came from."""
    if paths.home:
        return {"REEF_HOME": str(paths.home)}
    return {name: environ[name] for name in _XDG if environ.get(name, "").startswith("/")}


def wrapper_script(adapter: Adapter, paths: Paths, environ: Mapping[str, str]) -> str:
    """The text of `reef-<adapter>`: finds the same interpreter and the same home in whatever shell it is started."""
    lines = ["#!/bin/sh", f"# {adapter.title} on the harness that reef installed, with its calls going through reef."]
    lines += [MARK, f"python={shlex.quote(sys.executable)}", 'if [ ! -x "$python" ]; then']
    lines += ['    printf "error: the Python of this reef is gone: %s\\nhint: ./install.sh\\n" "$python" >&2']
    lines += ["    exit 1", "fi", f"{SET_BY_WRAPPER}="]
    for name, value in sorted(home_variables(paths, environ).items()):
        put = f'{name}={shlex.quote(value)}; export {name}; {SET_BY_WRAPPER}="${SET_BY_WRAPPER} {name}"'
        lines.append(f'if [ -z "${{{name}:-}}" ]; then {put}; fi')
    lines += [f"export {SET_BY_WRAPPER}", f'exec "$python" -P -m reef.harness.wrapper {adapter.name} "$@"', ""]
    return "\n".join(lines)


def _facts(made: Install) -> dict[str, Any]:
    return {
        "scenario": made.scenario,
        "adapter": made.adapter,
        "version": made.version,
        "release_id": made.release_id,
        "content_id": made.content_id,
        "files": made.files,
    }


def _recorded(folder: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads((folder / "install.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(facts, dict):
        return None
    for name in ("installed_at", "left_out"):
        facts.pop(name, None)
    # One that somebody has edited is no install: the next one puts it right.
    whole = all(type(facts.get(name)) is kind for name, kind in _FACTS.items())
    own = (facts.get("scenario"), facts.get("adapter")) == (folder.parent.name, folder.name)
    return facts if whole and own and all(isinstance(hash, str) for hash in facts["files"].values()) else None


def _hashes(tree: Path) -> dict[str, str]:
    """Path to hash of everything below `tree`. A link is never followed: it stands with its target, as no file does."""
    found: dict[str, str] = {}
    if tree.is_symlink():
        return {".": "link"}
    for above, folders, names in os.walk(tree):
        for name in [*names, *(folder for folder in folders if (Path(above) / folder).is_symlink())]:
            file = Path(above) / name
            path = file.relative_to(tree).as_posix()
            linked = file.is_symlink() or not file.is_file()
            found[path] = "link" if linked else hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def _refuse_twins(paths: Iterable[str]) -> None:
    """Raises InvalidInput for two names that are one where the case of letters is not told apart."""
    seen: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[:count])
            other = seen.setdefault(name.casefold(), name)
            if other != name:
                raise InvalidInput(f"the version: {name!r} and {other!r} differ only in the case of letters")


def _swap(tree: Path, files: Mapping[str, bytes]) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=".tree-", dir=tree.parent))
    old = tree.with_name(f"{fresh.name}-old")
    try:
        for path, body in files.items():
            place = fresh / path
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.write_bytes(body)
            place.chmod(0o600)
        if tree.exists() or tree.is_symlink():
            tree.rename(old)
        fresh.rename(tree)
    finally:
        for left in (fresh, old):
            if left.is_symlink():
                left.unlink()
            else:
                shutil.rmtree(left, ignore_errors=True)


def _write_wrapper(place: Path, adapter: Adapter, paths: Paths) -> bool:
    text = wrapper_script(adapter, paths, os.environ)
    if place.is_symlink() or place.exists():
        old = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
        if old == text and os.access(place, os.X_OK) and not place.is_symlink():
            return False
        if place.is_symlink() or MARK not in old:
            raise Refused(f"{place} is not reef's and is left alone", f"mv {place} {place}.old, then install again")
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(place)
    return True


def _write_text(place: Path, text: str) -> bool:
    if place.is_file() and place.read_text(encoding="utf-8").strip() == text:
        return False
    write_atomic(place, f"{text}\n".encode())
    return True
