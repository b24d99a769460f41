"""Flags of `reef serve` and `reef up`: any setting is one, as `--reef.port 8901` or `--reef.port=8901`.

What typer does not know by name comes here. Text becomes (dotted key, text) pairs; whether a key exists and its value
fits is `reef.config`'s business.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from reef.config import Resolved, Settings, load, model_flags
from reef.errors import UsageError
from reef.paths import Paths

_NAMED = ("config", "recipe", "model", "print-config", "version", "help")
_WORDS = ("true", "false", "yes", "no", "on", "off")


@dataclass(frozen=True)
class Wanted:
    """What a command line of `serve` or `up` asks for."""

    pairs: list[tuple[str, str]]
    """(dotted key, text) as typed, in the order of precedence."""
    deployment: Path | None
    resolved: Resolved

    def to_serve(self) -> dict[str, object]:
        """The object that the daemon reads from `REEF_SERVE`; `foreground` is the caller's."""
        deployment = None if self.deployment is None else str(self.deployment)
        return {"flags": [list(pair) for pair in self.pairs], "deployment": deployment}


def understand(
    paths: Paths, extra: Sequence[str], deployment: Path | None, recipe: str | None, model: str | None
) -> Wanted:
    """Read the flags and check every setting. Raises UsageError or ConfigError that names the nearest."""
    pairs: list[tuple[str, str]] = []
    if recipe is not None:
        pairs.append(("recipe.implementation", recipe))
    if model is not None:
        pairs += model_flags(model)
    pairs += dotted(extra)
    place = None if deployment is None else deployment.absolute()
    return Wanted(pairs, place, load(pairs, place, paths=paths))


def dotted(extra: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of `extra`. Raises UsageError for anything that is not a dotted flag with its value."""
    switches = set(switch_keys())
    pairs = []
    rest = list(extra)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise UsageError(f"{word!r} is not expected here", "reef help config")
        name, equals, value = word[2:].partition("=")
        negated = name.startswith("no-") and "." in name
        key = (name[3:] if negated else name).replace("_", "-")
        if "." not in key:
            raise _unknown(name)
        if negated:
            if key not in switches or equals:
                raise UsageError(f"--{name} is for a setting that is on or off, without a value", f"--{key}=…")
            value = "false"
        elif not equals and key in switches:
            value = rest.pop(0) if rest and rest[0].lower() in _WORDS else "true"
        elif not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"--{name} needs a value", f"--{name}=…")
            value = rest.pop(0)
        pairs.append((key, value))
    return pairs


def switch_keys() -> list[str]:
    """The settings that are on or off."""
    return [key for key, annotation in _fields(Settings) if annotation is bool]


def setting_keys() -> list[str]:
    """Every setting, dotted."""
    return [key for key, _ in _fields(Settings)]


def _fields(section: type[BaseModel], at: str = "") -> Iterator[tuple[str, object]]:
    for name, field in section.model_fields.items():
        key = f"{at}{name}".replace("_", "-")
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{key}.")
        else:
            yield key, kind


def _unknown(name: str) -> UsageError:
    # A setting is often typed without its section: `--port` means `--reef.port`.
    keys = setting_keys()
    ends = [key for key in keys if key.rpartition(".")[2] == name]
    near = ends or difflib.get_close_matches(name, [*_NAMED, *keys, *(k.rpartition(".")[2] for k in keys)], 1, 0.6)
    best = near[0] if near else ""
    whole = next((key for key in keys if key.rpartition(".")[2] == best), best)
    return UsageError(f"there is no flag --{name}", f"did you mean --{whole}?" if best else "reef help config")
