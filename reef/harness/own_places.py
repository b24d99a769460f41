"""What plain agents keep in the person's home, and the proof that reef leaves it as it is.

Checksums are taken when a harness is installed, at every start of a wrapper and whenever the person asks. A file is
read again only when its size, its times or its number say that it may differ: a start costs one look at each.

    own/<adapter>.json   {"installed": LOOKS, "started": LOOKS, "files": {place: {name: [stamp, sha256]}}}
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from reef.errors import ReefError
from reef.harness.adapter_file import Adapter
from reef.ids import utc_now
from reef.paths import Paths, write_atomic

Files = dict[str, list[Any]]
Moment = Literal["installed", "started"]


@dataclass(frozen=True)
class Look:
    """One place as it was at one moment. `sha256` is over the names and contents of all its files."""

    place: str
    at: str
    there: bool
    files: int
    bytes: int
    sha256: str


def places(adapter: Adapter, environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """The agent's own places as a person writes them, to where they are."""
    env = os.environ if environ is None else environ
    home = Path(env.get("HOME") or Path.home())
    found = {place: home / place.removeprefix("~/") for place in adapter.own.places}
    moved = env.get(adapter.home_variable) if adapter.home_variable and adapter.own.places else None
    return found | ({moved: Path(moved)} if moved else {})


def leaks(adapter: Adapter, environ: Mapping[str, str] | None = None) -> list[Path]:
    """What the agent reads of the person's although reef runs it, where there is any."""
    home = Path((os.environ if environ is None else environ).get("HOME") or Path.home())
    found = (home / place.removeprefix("~/") for place in adapter.own.leaks)
    return [place for place in found if place.exists()]


def look(adapter: Adapter, paths: Paths, environ: Mapping[str, str] | None = None) -> list[Look]:
    """All places of the agent as they are now."""
    return _look(adapter, _kept(adapter, paths), environ)[0]


def changed(adapter: Adapter, paths: Paths, environ: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """The files of each place that are not as they were when `note` looked last, by name."""
    kept = _kept(adapter, paths)
    before, (_, now) = kept.get("files") or {}, _look(adapter, kept, environ)
    found: dict[str, list[str]] = {}
    for place, files in now.items():
        old = before.get(place, files)
        different = {name for name in {*old, *files} if (old.get(name) or [0, 0])[1] != (files.get(name) or [0, 0])[1]}
        found[place] = sorted(different)
    return found


def note(moment: Moment, adapter: Adapter, paths: Paths, environ: Mapping[str, str] | None = None) -> None:
    """Look, and keep what was found as that of `moment`. The first install is kept, not the last."""
    kept = _kept(adapter, paths)
    if moment == "installed" and kept.get("installed"):
        return
    looks, files = _look(adapter, kept, environ)
    if looks:
        fresh = kept | {"files": files, moment: [asdict(item) for item in looks]}
        write_atomic(_file(adapter, paths), json.dumps(fresh).encode())


@contextmanager
def noting_start(adapter: Adapter, paths: Paths) -> Iterator[None]:
    """Note a start of the agent while it starts: a person with many sessions there would wait for it."""

    def work() -> None:
        # A proof that cannot be kept is no reason not to run the agent.
        with suppress(OSError, ReefError):
            note("started", adapter, paths)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def noted(moment: Moment, adapter: Adapter, paths: Paths) -> dict[str, Look]:
    """What `note` kept, by place."""
    return {row["place"]: Look(**row) for row in _kept(adapter, paths).get(moment) or []}


def _look(
    adapter: Adapter, kept: Mapping[str, Any], environ: Mapping[str, str] | None
) -> tuple[list[Look], dict[str, Files]]:
    looks: list[Look] = []
    files: dict[str, Files] = {}
    for name, place in places(adapter, environ).items():
        known = (kept.get("files") or {}).get(name) or {}
        files[name] = {inner: _read(file, known.get(inner)) for inner, file in _walk(place)}
        digest, size = hashlib.sha256(), 0
        for inner, (stamp, content) in sorted(files[name].items()):
            digest.update(f"{inner}\0{content}\n".encode(errors="surrogateescape"))
            size += stamp[0]
        looks.append(Look(name, utc_now(), place.exists(), len(files[name]), size, digest.hexdigest()))
    return looks, files


def _walk(place: Path) -> Iterator[tuple[str, Path]]:
    """Every file of a place, with its name below the place."""
    if not place.is_dir():
        if place.exists():
            yield "", place
        return
    for folder, folders, names in os.walk(place):
        for file in (Path(folder, name) for name in [*folders, *names]):
            if file.name in names or file.is_symlink():
                yield str(file.relative_to(place)), file


def _read(file: Path, known: list[Any] | None) -> list[Any]:
    """Stamp and checksum of one file; what is no plain file has its kind or its target instead."""
    try:
        facts = file.stat(follow_symlinks=False)
        stamp = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
        if known is not None and known[0] == stamp:
            return known
        if stat.S_ISLNK(facts.st_mode):
            return [stamp, f"link to {file.readlink()}"]
        if not stat.S_ISREG(facts.st_mode):
            return [stamp, f"mode {stat.S_IFMT(facts.st_mode):o}"]
        with file.open("rb") as opened:
            return [stamp, hashlib.file_digest(opened, "sha256").hexdigest()]
    except OSError as error:
        return [[0, 0, 0, 0], f"unreadable ({error.strerror})"]


def _kept(adapter: Adapter, paths: Paths) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(_file(adapter, paths).read_bytes())
        if isinstance(found, dict):
            return found
    return {}


def _file(adapter: Adapter, paths: Paths) -> Path:
    return paths.data / "own" / f"{adapter.name}.json"
