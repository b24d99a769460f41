"""The agents: how much of what they are given they take, and what they read that is not the version's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reef.doctor.check import Check, counted
from reef.harness import own_places
from reef.harness.adapter import known_adapters
from reef.harness.adapter_file import Adapter
from reef.harness.install import installed, installed_versions
from reef.paths import Paths

_FULL = 0.9
"""Part of what an agent takes from which on a person is told to look."""
_NAMED = 3


def check(paths: Paths) -> Iterator[Check]:
    """Every check of the agents; without an installed harness there is nothing to find."""
    found = installed_adapters(paths)
    if found:
        yield rules(paths, found)
        yield leaks(paths, found)


def installed_adapters(paths: Paths) -> list[Adapter]:
    """The adapters for which a harness is installed."""
    known = [adapter for _, adapter in known_adapters(paths) if isinstance(adapter, Adapter)]
    return [adapter for adapter in known if installed_versions(paths, adapter.name)]


def rules(paths: Paths, adapters: list[Adapter]) -> Check:
    """How many bytes of rules each agent is given, of how many that it takes."""
    taken: list[tuple[float, str]] = []
    for adapter in adapters:
        for row in installed_versions(paths, adapter.name):
            file = adapter.render.rules and installed(paths, row["name"], adapter.name).tree / adapter.render.rules
            held = file.stat().st_size if file and file.is_file() else 0
            most = adapter.limits.rules_bytes
            taken.append((held / most, f"{adapter.title}, {row['name']}: {held:,} of {most:,} bytes"))
    taken.sort(reverse=True)
    more = f" (and {len(taken) - _NAMED} more)" if len(taken) > _NAMED else ""
    sentence = f"rules: {'; '.join(text for _, text in taken[:_NAMED])}{more}"
    if taken and taken[0][0] >= _FULL:
        return Check("rules", "warn", f"{sentence}; what goes over is refused", "reef versions show")
    return Check("rules", "ok", sentence)


def leaks(paths: Paths, adapters: list[Adapter]) -> Check:
    """What agents read of the person's own whatever their home is, and whether it hides a skill of the version."""
    readers: dict[Path, list[str]] = {}
    for adapter in adapters:
        for place in own_places.leaks(adapter):
            readers.setdefault(place, []).append(adapter.title)
    if not readers:
        return Check("leaks", "ok", "the agents read nothing of yours but the project that they work in")
    said = [f"{_who(names)} also {_verb(names)} {place}" for place, names in readers.items()]
    twice = sorted({name for place in readers for name in _entries(place)} & _delivered(paths, adapters))
    if twice:
        sentence = f"{'; '.join(said)}, where {', '.join(twice[:_NAMED])} is called as in a version"
        return Check("leaks", "warn", sentence, f"ls {next(iter(readers))}")
    skills = counted(sum(len(_entries(place)) for place in readers), "skill")
    return Check("leaks", "ok", f"{'; '.join(said)} ({skills})")


def _delivered(paths: Paths, adapters: list[Adapter]) -> set[str]:
    """The names of all skills that are installed."""
    found: set[str] = set()
    for adapter in adapters:
        folder = (adapter.render.skill or "").partition("/{id}")[0]
        for row in installed_versions(paths, adapter.name):
            found |= set(_entries(installed(paths, row["name"], adapter.name).tree / folder)) if folder else set()
    return found


def _entries(place: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in place.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def _who(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(names: list[str]) -> str:
    return "reads" if len(names) == 1 else "read"
