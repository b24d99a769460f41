"""Taking an install away: its tree, the agent's home in reef's folder, and what only this install used.

The wrapper and the agent's program go with the last scenario that was installed for the agent. Nothing that reef did
not write is touched, the agent's own configuration least of all.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, NotFound
from reef.harness.install import MARK, installed, installed_versions, locked
from reef.paths import Paths

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")


@dataclass(frozen=True)
class Removed:
    """What was taken away."""

    scenario: str
    adapter: str
    version: int
    places: list[Path]

    def to_json(self) -> dict[str, Any]:
        """`{"scenario", "adapter", "version", "removed": [path, …]}`."""
        return {
            "scenario": self.scenario,
            "adapter": self.adapter,
            "version": self.version,
            "removed": [str(place) for place in self.places],
        }


def remove_install(paths: Paths, scenario: str, adapter: str) -> Removed:
    """Remove what is installed of `scenario` for `adapter`, whose name is enough: its folder may be gone.

    Raises NotFound when nothing is installed, InvalidInput for what is no adapter's name.
    """
    if not _NAME.match(adapter):
        raise InvalidInput(f"{adapter[:80]!r} is no name of an agent", "reef agents list")
    try:
        install = installed(paths, scenario, adapter)
    except NotFound as nothing:
        raise NotFound(nothing.message, "reef agents list") from None
    with locked(install.folder):
        _remove(install.folder)
    places = [install.folder]
    if not any(install.folder.parent.iterdir()):
        install.folder.parent.rmdir()
    if not installed_versions(paths, adapter):
        places += _of_the_agent(paths, adapter)
    others = list(paths.harness.glob(f"{install.scenario}/*/install.json"))
    last = paths.last_install
    if not others and last.is_file() and last.read_text(encoding="utf-8").strip() == install.scenario:
        last.unlink()
    return Removed(install.scenario, adapter, install.version, places)


def _of_the_agent(paths: Paths, adapter: str) -> list[Path]:
    """Remove what all scenarios shared for one agent."""
    found: list[Path] = []
    wrapper = paths.bin / f"reef-{adapter}"
    if wrapper.is_file() and not wrapper.is_symlink() and MARK in wrapper.read_text(errors="replace"):
        wrapper.unlink()
        found.append(wrapper)
    program = paths.agents / adapter
    # Programs that somebody keeps elsewhere and linked here are theirs.
    if program.is_dir() and not program.is_symlink() and not paths.agents.is_symlink():
        _remove(program)
        found.append(program)
    return found


def _remove(folder: Path) -> None:
    """Out of the way first: what is half removed must not look like an install."""
    away = Path(tempfile.mkdtemp(prefix=".gone-", dir=folder.parent))
    try:
        folder.rename(away / folder.name)
    finally:
        shutil.rmtree(away, ignore_errors=True)
