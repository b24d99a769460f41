"""The agent's config home: links into the installed tree, the files that point it at reef, and its own state.

What the agent reads of a version is a link, so that a new install is there on its next start or reload. What it writes
itself stays, but of its settings only the keys that the adapter names as a person's preferences. Instructions that are
not the version's are refused and left where they are.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, Refused
from reef.harness.adapter_file import Adapter
from reef.harness.binding import Served, Value, binding, filled, merge, placeholders
from reef.harness.formats import formatted, parsed
from reef.harness.install import Install
from reef.paths import ensure_private, write_atomic

_BASE = ".reef-base.json"
"""What reef wrote last, without the person's preferences: what differs from it is theirs."""


def prepare_home(install: Install, adapter: Adapter, served: Served, cwd: Path) -> dict[str, Value]:
    """Make the home ready for a start in `cwd`. Returns the placeholders of the run, `home` among them.

    Raises Refused when the home holds something that the agent would read and that is not the version's.
    """
    home = ensure_private(install.home)
    # An agent that is told its home by a link may know it by the other name, also where it keeps what was trusted.
    values = placeholders(adapter, served, home.resolve(), install.tree, cwd)
    rendered = {path: (install.tree / path).read_bytes() for path in install.files}
    bound = binding(adapter, values, rendered)
    _link(home, install, [path for path in install.files if path not in bound], adapter)
    base = _read(home / _BASE)
    for path, content in bound.items():
        fresh = parsed(path, content)
        kept = _preferences(home / path, base.get(path, {}), adapter.state.get(path, []))
        _write(home / path, merge(fresh, kept))
        base[path] = fresh
    for path, seed in adapter.home.seed.items():
        theirs = _read(home / path)
        for key in adapter.home.cleared.get(path, []):
            _clear(theirs, key.split("."))
        _write(home / path, merge(theirs, filled(seed, values)))
    _write(home / _BASE, base)
    return values


def prepare_alongside(install: Install, adapter: Adapter, served: Served, cwd: Path) -> dict[str, Value]:
    """Make the folder ready from which the agent runs on top of the person's own configuration.

    Returns the placeholders of the run, with `alongside`, the folder, and `rules`, the text of all rules. Raises
    Refused where the agent cannot be run like that.
    """
    found = adapter.alongside
    if found is None:
        own = f"reef-{adapter.name}"
        raise Refused(f"{adapter.title} cannot be run on top of your own configuration", f"{own}, without --alongside")
    folder = ensure_private(install.folder / "alongside")
    rules = install.tree / adapter.render.rules if adapter.render.rules else None
    values = placeholders(adapter, served, folder, install.tree, cwd) | {
        "alongside": str(folder),
        "rules": rules.read_text(encoding="utf-8") if rules is not None and rules.is_file() else "",
    }
    for name, path in found.links.items():
        target = install.tree / path
        if not target.exists() and not Path(path).suffix:
            # An agent that is given a folder must find one, also while the version has nothing for it.
            target = ensure_private(folder / ".empty")
        _point(folder / name, os.path.relpath(target, (folder / name).parent))
    for path, content in found.binding.items():
        _write(folder / path, filled(content, values))
    return values


def _link(home: Path, install: Install, paths: list[str], adapter: Adapter) -> None:
    # A place that this version does not fill is linked as well: a later install fills it while the agent runs.
    names = sorted({place.partition("/")[0] for place in [*adapter.render.places.values(), *paths]})
    if adapter.home.link == "entries":
        _link_entries(home, install, names)
        _refuse_foreign(home, [name for name in names if not (home / name).is_dir()], adapter)
        return
    _refuse_foreign(home, names, adapter)
    for name in names:
        _point(home / name, os.path.relpath(install.tree / name, home))


def _link_entries(home: Path, install: Install, names: Iterable[str]) -> None:
    """A link for every entry in the tree's folders, beside what the agent itself keeps there."""
    for name in names:
        source = install.tree / name
        if not source.is_dir():
            if source.is_file():
                _point(home / name, os.path.relpath(source, home))
            elif (home / name).is_symlink():
                (home / name).unlink()
            continue
        folder = home / name
        folder.mkdir(mode=0o700, exist_ok=True)
        for place in folder.iterdir():
            if place.is_symlink() and not place.exists():
                place.unlink()
        for entry in source.iterdir():
            _point(folder / entry.name, os.path.relpath(entry, folder))


def _point(place: Path, target: str) -> None:
    if place.is_symlink() and str(place.readlink()) != target:
        place.unlink()
    if not place.is_symlink():
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.symlink_to(target)


def _refuse_foreign(home: Path, names: list[str], adapter: Adapter) -> None:
    """Raises Refused for what the agent would read beside the version or instead of it."""
    # In any case of letters: some file systems, and some agents, do not tell them apart.
    read = {name.casefold() for name in [*names, *adapter.home.refused]}
    for place in sorted(home.iterdir()):
        if place.name.casefold() in read and not (place.name in names and place.is_symlink()):
            again = f"mv {shlex.quote(str(place))} {shlex.quote(f'{place}.old')}"
            raise Refused(f"{place} was not put there by reef, and {adapter.title} would read it", again)


def _preferences(place: Path, base: dict[str, Any], allowed: list[str]) -> dict[str, Any]:
    """What the person changed inside the agent since reef last wrote the file."""
    now = _read(place)
    kept: dict[str, Any] = {}
    for key in allowed:
        path = key.split(".")
        changed = _changed(_at(now, path), _at(base, path))
        if changed is not None:
            for name in reversed(path):
                changed = {name: changed}
            kept = merge(kept, changed)
    return kept


def _clear(value: Any, path: list[str]) -> None:
    """Take what is at `path` out of `value`; `*` stands for every key."""
    if not isinstance(value, dict):
        return
    for name in list(value) if path[0] == "*" else [path[0]]:
        if len(path) == 1:
            value.pop(name, None)
        else:
            _clear(value.get(name), path[1:])


def _at(value: Any, path: list[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _changed(now: Any, base: Any) -> Any:
    """What of `now` is not in `base`; None for nothing. An object is looked at key by key."""
    if not isinstance(now, Mapping) or not isinstance(base, Mapping):
        return None if now == base else now
    found = {key: _changed(value, base.get(key)) for key, value in now.items()}
    return {key: value for key, value in found.items() if value is not None} or None


def _read(place: Path) -> dict[str, Any]:
    try:
        return parsed(place.name, place.read_bytes())
    except (OSError, InvalidInput):
        return {}


def _write(place: Path, value: Mapping[str, Any]) -> None:
    content = formatted(place.name, value)
    if not place.is_file() or place.read_bytes() != content:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(place, content)
