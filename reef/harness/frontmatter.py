"""The YAML block at the head of a skill or command text, read strictly."""

from __future__ import annotations

from typing import Any

import yaml

from reef.errors import InvalidInput


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


def field(values: dict[str, Any] | None, key: str) -> str:
    """The text of one key, `""` when it is not there or empty. Raises InvalidInput when it is not text."""
    value = (values or {}).get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"the {key} in the front matter is not text (put it in quotes)")
    return " ".join(value.split())
