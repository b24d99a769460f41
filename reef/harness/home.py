"""The agent's config home: links into the installed tree, the files that point it at reef, and its own state.

What the agent reads of a version is a link, so that a new install is there on its next start or reload. What it writes
itself stays, but of its settings only the keys that the adapter names as a person's preferences. Instructions that are
not the version's are refused and left where they are.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

from reef.errors import Refused
from reef.harness.adapter import Adapter, binding, merge_json
from reef.harness.install import Install
from reef.paths import ensure_private, write_atomic

_BASE = ".reef-base.json"
"""What reef wrote last, without the person's preferences: what differs from it is theirs."""


def prepare_home(
    install: Install, adapter: Adapter, url: str, model: str, context_window: int | None, max_tokens: int | None
) -> Path:
    """Make the home ready for a start and return it.

    Raises Refused when the home holds something that the agent would read and that is not the version's.
    """
    home = ensure_private(install.home)
    rendered = {path: (install.tree / path).read_bytes() for path in install.files}
    bound = binding(adapter, url, model, context_window, max_tokens, rendered)
    _link(home, install, [path for path in install.files if path not in bound], adapter)
    base = _read(home / _BASE)
    for path, content in bound.items():
        fresh = json.loads(content)
        kept = _preferences(home / path, base.get(path, {}), adapter.state.get(path, []))
        _write(home / path, merge_json(fresh, kept))
        base[path] = fresh
    _write(home / _BASE, base)
    return home


def _link(home: Path, install: Install, paths: list[str], adapter: Adapter) -> None:
    # A place that this version does not fill is linked as well: a later install fills it while the agent runs.
    places = (adapter.render.rules, adapter.render.skill, adapter.render.agent_command, adapter.render.code_extension)
    names = sorted({place.partition("/")[0] for place in [*places, *paths] if place})
    _refuse_foreign(home, names, adapter)
    for name in names:
        place = home / name
        target = os.path.relpath(install.tree / name, home)
        if place.is_symlink() and str(place.readlink()) != target:
            place.unlink()
        if not place.is_symlink():
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
    return {key: now[key] for key in allowed if key in now and now[key] != base.get(key)}


def _read(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(place: Path, value: dict[str, Any]) -> None:
    content = (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    if not place.is_file() or place.read_bytes() != content:
        write_atomic(place, content)
