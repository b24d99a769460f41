"""The agents: whether they are the ones that were tested, how much of what they are given they take, and what they read
that is not the version's."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from reef.doctor.check import Check, counted
from reef.harness import own_places
from reef.harness.adapter import known_adapters
from reef.harness.adapter_file import Adapter
from reef.harness.agents import is_installed, other_versions
from reef.harness.install import installed, installed_versions
from reef.paths import Paths
from reef.text import one_line

_FULL = 0.9
"""Part of what an agent takes from which on a person is told to look."""
_NAMED = 3
_ASK_S = 20


def check(paths: Paths) -> Iterator[Check]:
    """Every check of the agents; without an installed harness there is nothing to find."""
    found = installed_adapters(paths)
    if found:
        yield programs(paths, found)
        yield rules(paths, found)
        yield leaks(paths, found)


def installed_adapters(paths: Paths) -> list[Adapter]:
    """The adapters for which a harness is installed."""
    known = [adapter for _, adapter in known_adapters(paths) if isinstance(adapter, Adapter)]
    return [adapter for adapter in known if installed_versions(paths, adapter.name)]


def programs(paths: Paths, adapters: list[Adapter]) -> Check:
    """Whether each agent's program is there, in the version that was tested."""
    said: list[str] = []
    odd: list[tuple[str, str]] = []
    for adapter in adapters:
        fault = _own_fault(adapter) if adapter.install is None else _fault(adapter, paths)
        if fault is None:
            said.append(f"{adapter.title} {adapter.install.version if adapter.install else adapter.run.tested}".strip())
        else:
            odd.append(fault)
    if odd:
        more = f" (and {len(odd) - _NAMED} more)" if len(odd) > _NAMED else ""
        return Check("agents", "warn", f"agents: {'; '.join(text for text, _ in odd[:_NAMED])}{more}", odd[0][1])
    more = f" and {len(said) - _NAMED} more" if len(said) > _NAMED else ""
    return Check("agents", "ok", f"agents: {', '.join(said[:_NAMED])}{more}")


def _fault(adapter: Adapter, paths: Paths) -> tuple[str, str] | None:
    """What is wrong with a program that reef installs, and the command that mends it."""
    if adapter.install is None or is_installed(adapter, paths):
        return None
    there = other_versions(adapter, paths)
    have = f"{adapter.title} {there[-1]} is installed" if there else f"{adapter.title} is not installed"
    return f"{have}, this reef was tested with {adapter.install.version}", f"reef agents add {adapter.name}"


def _own_fault(adapter: Adapter) -> tuple[str, str] | None:
    """The same for one that the person installs."""
    program = shutil.which(adapter.binary)
    if program is None:
        return f"{adapter.title} is not on the PATH", adapter.run.get or f"reef agents remove {adapter.name}"
    said = _said([program, *adapter.run.version])
    if adapter.run.tested and said != adapter.run.tested:
        what = f"{program} says {said!r}" if said else f"{program} names no version"
        return f"{what}, tested was {adapter.run.tested!r}", shlex.join([program, *adapter.run.version])
    return None


def _said(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ASK_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return one_line(done.stdout.strip(), 80)


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
