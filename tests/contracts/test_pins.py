"""`reef/constraints.txt` pins everything that an installation or a test run pulls in, and nothing of this machine."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def canonical(name: str) -> str:
    """A distribution name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Name to version of every line of the constraints file."""
    found = {}
    for line in (ROOT / "reef/constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[name] = version
    return found


def wanted() -> dict[str, Requirement]:
    """Every distribution that reef and its tests need on this machine, by the packages' own metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    waiting = [
        Requirement(text) for text in (*project["project"]["dependencies"], *project["dependency-groups"]["test"])
    ]
    found: dict[str, Requirement] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonical(requirement.name), frozenset(requirement.extras))
        if key in seen or not _applies(requirement, {""}):
            continue
        seen.add(key)
        found[key[0]] = requirement
        for text in importlib.metadata.requires(requirement.name) or []:
            child = Requirement(text)
            if _applies(child, {"", *requirement.extras}):
                child.marker = None
                waiting.append(child)
    return found


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def test_everything_that_is_installed_is_pinned() -> None:
    # pip belongs to the environment: pinning it would replace the one that Python brought.
    assert set(wanted()) - set(pins()) - {"pip", "setuptools"} == set()


def test_the_pins_are_versions_and_nothing_else() -> None:
    lines = (ROOT / "reef/constraints.txt").read_text(encoding="utf-8").splitlines()
    strange = [line for line in lines if line and not re.fullmatch(r"#.*|[a-z0-9-]+==[0-9][0-9A-Za-z.+]*", line)]
    assert not strange


def test_the_pins_fit_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = pins()
    for text in (*project["project"]["dependencies"], *project["dependency-groups"]["test"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(versions[canonical(requirement.name)]), text
