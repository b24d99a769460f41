"""Configuration files of agents as values and back: JSON, TOML and YAML, told by the suffix; without one it is JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from reef.errors import InvalidInput

FORMATS = (".json", ".toml", ".yaml")


def formatted(path: str, value: Any) -> bytes:
    """`value` as the content of the file `path`. Raises InvalidInput for a value that its format cannot hold."""
    try:
        return _WRITERS[PurePosixPath(path).suffix](value).encode()
    except KeyError:
        raise InvalidInput(f"{path} is no kind of file that reef can write (kinds: {', '.join(FORMATS)})") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path} cannot hold the value: {error}") from None


def toml_value(value: Any) -> str:
    """`value` on one line, as TOML writes it behind a key."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{toml_value(str(key))}={toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(toml_value, value)) + "]"
    # JSON's strings are TOML's, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def parsed(path: str, content: bytes) -> dict[str, Any]:
    """The object in a file's content. Raises InvalidInput when it cannot be read or is no object."""
    try:
        found = _READERS[PurePosixPath(path).suffix](content.decode("utf-8"))
    except KeyError:
        raise InvalidInput(f"{path} is no kind of file that reef can read (kinds: {', '.join(FORMATS)})") from None
    except ValueError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} holds no object")
    return found


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _toml(value: Any) -> str:
    # Loaded on use: most agents have no such file.
    import tomli_w

    return tomli_w.dumps(value)


def _yaml(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=4096))


def _read_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace("\n", " ")) from None


_WRITERS: dict[str, Callable[[Any], str]] = {"": _json, ".json": _json, ".toml": _toml, ".yaml": _yaml}
_READERS: dict[str, Callable[[str], Any]] = {
    "": json.loads,
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".yaml": _read_yaml,
}
