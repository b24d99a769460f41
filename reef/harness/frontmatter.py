"""The YAML block at the head of a skill or command text, read strictly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from reef.errors import InvalidInput
from reef.text import one_line

_DESCRIPTION = 200
"""Columns of a description that reef makes."""


def split(text: str) -> tuple[str | None, str]:
    """The block between the first two `---` lines, and what follows it; None when the text starts with no block.

    Raises InvalidInput when the block is opened and never closed.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise InvalidInput("the front matter is opened with '---' and never closed")


def read(text: str) -> tuple[dict[str, Any] | None, str]:
    """The block as an object, and what follows it; None when there is no block.

    Raises InvalidInput when the block is not a YAML object, or holds a key twice.
    """
    block, body = split(text)
    if block is None:
        return None, body
    try:
        node = yaml.compose(block, Loader=yaml.SafeLoader)
        value = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError) as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 2})" if place is not None else ""
        raise InvalidInput(f"the front matter is not YAML{line}") from None
    if node is None:
        return {}, body
    if not isinstance(node, yaml.MappingNode) or not isinstance(value, dict):
        raise InvalidInput("the front matter is not an object of keys and values")
    if len(value) != len(node.value):
        raise InvalidInput("the front matter holds a key twice")
    return {str(key): item for key, item in value.items()}, body


def completed(text: str, wanted: Iterable[str], name: str) -> str:
    """`text` with what its front matter lacks of `wanted`: the name, and a description made of the first line.

    A block that cannot be read stays as it is.
    """
    try:
        values, body = read(text)
    except InvalidInput:
        return text
    given = values or {}
    first = next((line.lstrip("# ") for line in body.splitlines() if line.strip("# ")), name)
    facts = {"name": name, "description": one_line(first, _DESCRIPTION)}
    missing = {key: facts[key] for key in wanted if not given.get(key)}
    if not missing:
        return text
    block = yaml.safe_dump(missing | given | missing, allow_unicode=True, sort_keys=False, width=4096)
    return f"---\n{block}---\n{body}"


def field(values: dict[str, Any] | None, key: str) -> str:
    """The text of one key, `""` when it is not there or empty. Raises InvalidInput when it is not text."""
    value = (values or {}).get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"the {key} in the front matter is not text (put it in quotes)")
    return " ".join(value.split())
