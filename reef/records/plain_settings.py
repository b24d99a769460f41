"""The person's settings as they may leave the home: values only, and none that is a secret.

Comments are left out too: an old key behind a `#` looks like any other word.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import yaml
from pydantic import BaseModel, SecretStr

from reef.config import Settings
from reef.credentials import clean_json

_TELLING = re.compile(r"key|token|secret|password|passwd|credential", re.I)
_FREE = ("recipe.config.",)
"""Below these, names are somebody else's, so a name that sounds like a secret is one."""


def without_secrets(text: str) -> tuple[str, list[str]]:
    """The YAML of `text` without secrets, and the dotted keys that were left out. Raises yaml.YAMLError."""
    values = yaml.safe_load(text)
    left_out: list[str] = []
    kept = _kept(values, "", left_out) if isinstance(values, dict) else {}
    cleaned = clean_json(kept)
    body = yaml.safe_dump(cleaned, sort_keys=False, allow_unicode=True) if cleaned else ""
    return f"# from a backup; comments and secrets were left out\n{body}", left_out


def secret_keys() -> set[str]:
    """The dotted keys of every setting that holds a secret."""
    found: set[str] = set()

    def walk(section: type[BaseModel], at: str) -> None:
        for name, info in section.model_fields.items():
            key = f"{at}{name.replace('_', '-')}"
            if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
                walk(info.annotation, f"{key}.")
            elif SecretStr.__name__ in str(info.annotation):
                found.add(key)

    walk(Settings, "")
    return found


def _kept(values: dict[Any, Any], at: str, left_out: list[str]) -> dict[Any, Any]:
    secrets = secret_keys()
    kept: dict[Any, Any] = {}
    for name, value in values.items():
        key = f"{at}{str(name).replace('_', '-')}"
        if key in secrets and value == "auto":
            kept[name] = value
        elif key in secrets or (key.startswith(_FREE) and _TELLING.search(str(name))):
            left_out.append(key)
        elif isinstance(value, dict):
            kept[name] = _kept(value, f"{key}.", left_out)
        else:
            kept[name] = _plain_address(value, key, left_out) if isinstance(value, str) else value
    return kept


def _plain_address(value: str, key: str, left_out: list[str]) -> str:
    """An address without the user and the query's values that may be keys; any other text as it is."""
    if "://" not in value:
        return value
    parts = urlsplit(value)
    asked = "&".join(part for part in parts.query.split("&") if "version" in part.partition("=")[0].lower())
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=asked))
    if plain != value:
        left_out.append(key)
    return plain
