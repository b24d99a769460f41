"""What points an agent at reef: files and variables made from the adapter's placeholders at every start.

No file holds a key: where one is needed it names the variable `REEF_SESSION`, or the agent takes it from a variable of
its own that is set for the run alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.harness.adapter_file import Adapter
from reef.harness.formats import formatted, parsed, toml_value

Value = str | int | list[str]
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_TYPED = re.compile(r"/(\S+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Served:
    """What an agent is pointed at."""

    url: str
    """The daemon, or a recorder, without `/v1`."""
    model: str
    context_window: int | None = None
    """Tokens; None where the server does not say."""
    max_tokens: int | None = None
    """Most tokens of a reply; None where the server does not say."""


def placeholders(adapter: Adapter, served: Served, home: Path, tree: Path, cwd: Path) -> dict[str, Value]:
    """Every placeholder of a run but the token. `home`: the agent's config home, `tree`: what is rendered for it.

    `base_url` has `/v1` where the agent's dialect wants it; `person` is the person's own home; `hook` is a shell
    command to which the name of an event is added.
    """
    window = served.context_window or adapter.models.context_window
    url = served.url.rstrip("/")
    values: dict[str, Value] = {
        "url": url,
        "base_url": url + ("" if adapter.dialect == "messages" else "/v1"),
        "model": served.model,
        "context_window": max(window, adapter.models.least_window),
        "max_tokens": served.max_tokens or min(adapter.models.max_tokens, window // 4),
        "reserve_tokens": min(16384, window // 4),
        "keep_tokens": min(20000, window // 3),
        "home": str(home),
        "tree": str(tree),
        "cwd": str(cwd),
        "person": str(Path.home()),
        "python": sys.executable,
        "project_rules": _project_rules(adapter.home.project_rules, cwd),
        "hook": shlex.join([sys.executable, "-P", "-m", "reef.harness.hook", adapter.name]),
    }
    return values | {name: _digest(filled(value, values)) for name, value in adapter.digests.items()}


def _project_rules(names: list[str], cwd: Path) -> list[str]:
    """The rules of the project that `cwd` is in, the outermost first: up to the folder that git keeps, if there is one.

    In `cwd` itself the file need not be there yet.
    """
    if not names:
        return []
    folders = [cwd, *cwd.parents]
    top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    found: list[str] = []
    for folder in reversed(folders[: top + 1]):
        there = [name for name in names if (folder / name).is_file()] or (names if folder == cwd else [])
        found += [str(folder / name) for name in there[:1]]
    return found


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def filled(value: Any, values: Mapping[str, Value]) -> Any:
    """`value` with its placeholders replaced, in keys as well. One that is unknown stays as it is."""
    if isinstance(value, Mapping):
        return {filled(key, values): filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if not isinstance(value, str):
        return value
    if (whole := _PLACEHOLDER.fullmatch(value)) and whole[1] in values:
        return values[whole[1]]
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), value)


def words(parts: Iterable[str], values: Mapping[str, Value]) -> list[str]:
    """Arguments of a command line with their placeholders replaced."""
    return [str(filled(part, values)) for part in parts]


def headless_arguments(
    adapter: Adapter, prompt: str, values: Mapping[str, Value], commands: Container[str]
) -> list[str]:
    """What follows the program in one run without a person that is given `prompt`.

    That may be a typed command, if it is one of `commands`: an agent that takes it as an argument knows no other.
    """
    typed = _TYPED.fullmatch(prompt)
    if not adapter.run.command or typed is None or typed[1] not in commands:
        return words([*adapter.run.arguments, *adapter.run.headless], {**values, "prompt": prompt})
    found = words(adapter.run.arguments, values)
    for part in adapter.run.command:
        found += (typed[2] or "").split() if part == "{words}" else words([part], {**values, "id": typed[1]})
    return found


def own_arguments(adapter: Adapter, values: Mapping[str, Value], alongside: bool = False) -> list[str]:
    """What stands before the person's own arguments."""
    found = words(adapter.run.arguments, values)
    if alongside and adapter.alongside is not None:
        found += words(adapter.alongside.arguments, values)
        for key, value in filled(adapter.alongside.settings, values).items():
            found += ["-c", f"{key}={toml_value(value)}"]
    return found


def binding(
    adapter: Adapter, values: Mapping[str, Value], rendered: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """The files of the agent's home that point it at reef: path to content.

    A file that `rendered` also holds is merged: the adapter's defaults, then the tree's values, then the binding. Here
    `{extensions}` is one more placeholder: the ids of the code extensions among `rendered`.
    """
    files: dict[str, bytes] = {}
    values = {**values, "extensions": _extensions(adapter, rendered or {})}
    for place in sorted({*adapter.binding, *adapter.defaults}):
        theirs = parsed(place, rendered[place]) if rendered and place in rendered else {}
        merged = merge(filled(adapter.defaults.get(place, {}), values), theirs)
        files[place] = formatted(place, merge(merged, filled(adapter.binding.get(place, {}), values)))
    return files


def _extensions(adapter: Adapter, rendered: Iterable[str]) -> list[str]:
    place = re.escape(adapter.render.code_extension or "").replace(r"\{id\}", "([^/]+)").replace(r"\{ext\}", "[^/]+")
    found = [re.fullmatch(place, path) for path in sorted(rendered)] if place else []
    return [match[1] for match in found if match]


def bound_environment(adapter: Adapter, values: Mapping[str, Value], alongside: bool = False) -> dict[str, str]:
    """Variables of a run that point the agent at reef; with its home moved, unless it runs `alongside`."""
    own = dict(zip(adapter.run.bound, words(adapter.run.bound.values(), values), strict=True))
    if alongside:
        more = adapter.alongside.bound if adapter.alongside else {}
        return own | dict(zip(more, words(more.values(), values), strict=True))
    moved = {adapter.home_variable: str(values["home"])} if adapter.home_variable else {}
    return own | moved | dict(zip(adapter.home.variables, words(adapter.home.variables.values(), values), strict=True))


def merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one; `high` wins, objects are merged key by key."""
    both = dict(low)
    for key, value in high.items():
        old = both.get(key)
        both[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both
