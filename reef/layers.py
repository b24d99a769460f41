"""The layers that settings come from: read, and laid over each other; what their keys mean is `reef.config`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from reef.errors import ConfigError

Layer: TypeAlias = tuple[dict[str, Any], dict[str, str]]
"""Nested values, and for each dotted key where its value stands."""


_FREE = ("recipe.config", "tui.keys", "usage.prices")
"""Below these, keys are names of the person's or a recipe's own and stay as they are written."""


def read_file(path: Path, env: Mapping[str, str], interpolate: bool) -> Layer:
    """The layer of a YAML file; with `interpolate` its `${VAR}` are replaced. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise ConfigError(f"there is no settings file {path}", "reef config show") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{path} cannot be read as YAML: {reason}", "reef config show") from None
    origins: dict[str, str] = {}
    values = {} if node is None else _plain(node, path, "", origins)
    if not isinstance(values, dict):
        raise ConfigError(f"{path} does not hold keys and values", "reef help config")
    values.pop("schema-version", None)
    origins.pop("schema-version", None)
    return (_interpolate(values, env, path) if interpolate else values), origins


def _plain(node: yaml.Node, path: Path, at: str, origins: dict[str, str]) -> Any:
    if not isinstance(node, yaml.MappingNode):
        origins[at] = f"{path}:{node.start_mark.line + 1}"
        return yaml.SafeLoader("").construct_object(node, deep=True)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value).replace("_", "-") if _is_schema_key(at) else str(key_node.value)
        if key in found:
            raise ConfigError(f"{path}:{key_node.start_mark.line + 1}: {key!r} is there twice", "reef config show")
        found[key] = _plain(value_node, path, f"{at}.{key}" if at else key, origins)
    return found


def _is_schema_key(parent: str) -> bool:
    return parent not in _FREE and not parent.startswith(tuple(f"{section}." for section in _FREE))


def _interpolate(value: Any, env: Mapping[str, str], path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _interpolate(item, env, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolate(item, env, path) for item in value]
    if not isinstance(value, str):
        return value

    def put(match: re.Match[str]) -> str:
        name, needed = match.group(1), match.group(2)
        if name not in env and needed:
            raise ConfigError(f"{path} needs the variable {name}, which is not set", f"export {name}=…")
        return env.get(name, "")

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:\?)?\}", put, value)


def from_pairs(pairs: Sequence[tuple[str, str, str]]) -> Layer:
    """The layer of (dotted key, text, origin): flags, or variables."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, text, origin in pairs:
        parts = [part.replace("_", "-") if place < 2 else part for place, part in enumerate(key.split("."))]
        target = values
        for part in parts[:-1]:
            target = target.setdefault(part, {})
        target[parts[-1]] = _typed(".".join(parts), text)
        origins[".".join(parts)] = origin
    return values, origins


def _typed(key: str, text: str) -> Any:
    """Text of a flag or variable as a value: JSON for lists and tables and free keys, the text itself otherwise."""
    if text[:1] in ("[", "{") or not _is_schema_key(key.rpartition(".")[0]):
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of {key} is not JSON: {str(error).splitlines()[0]}") from None
    return text


def merge(layers: Sequence[Layer]) -> Layer:
    """All layers as one; a later one goes before an earlier one, key by key."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer, origin in layers:
        values = _merged(values, layer)
        origins |= origin
    return values, origins


def _merged(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    both = dict(low)
    for key, value in high.items():
        old = both.get(key)
        both[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return both
