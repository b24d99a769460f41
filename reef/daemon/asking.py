"""What an ask may be: the checks of `POST /reef/train`, before anything is stored.

A refusal names the rule, never the text that broke it: the text may be a secret, and the reply may be logged.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import orjson

from reef.credentials import find_credentials
from reef.errors import InvalidInput

LONGEST = 4000
_MOST_REQUIRES = 8
_KINDS = ("permission", "env", "service", "binary")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# What a text says that wants to be obeyed by the model that writes the change instead of being read by it.
_OVERRIDES = (
    re.compile(
        r"\b(?:ignore|disregard|forget|override)\b.{0,20}\b(?:previous|prior|above|earlier|preceding|your|system)\b"
        r".{0,20}\b(?:instructions?|prompts?|rules|guidelines?|directions?|programming)\b",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+|every\s+)?(?:the\s+)?instructions?\b", re.IGNORECASE),
    re.compile(r"<\|?(?:im_start|im_end|system|endoftext|begin_of_text|start_header_id)\|?>|\[/?INST\]", re.IGNORECASE),
    re.compile(r"^\s*(?:system|developer)\s*(?:prompt|message)?\s*:", re.IGNORECASE | re.MULTILINE),
    re.compile(r"\byou are (?:now|no longer)\b.{0,40}\b(?:assistant|model|ai|agent|dan|bound|restricted)\b", re.I),
)


@dataclass(frozen=True)
class Wish:
    """A checked ask."""

    text: str
    session: str | None
    release_id: str | None
    requires: list[dict[str, Any]]
    client: dict[str, Any] | None

    @property
    def content_hash(self) -> bytes:
        """What two sendings of one ask have in common; `client` is information and does not count."""
        content = [self.text, self.session, self.release_id, self.requires]
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


def read_wish(body: dict[str, Any]) -> Wish:
    """Check the body of `POST /reef/train`. Raises InvalidInput that names the field and the rule."""
    text = body.get("text")
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("the ask is empty", 'use {"text": "when I ask you to …"}')
    if len(text) > LONGEST:
        raise InvalidInput(
            f"the ask has {len(text)} characters, the limit is {LONGEST}", "ask for one change at a time"
        )
    check_text("the ask", text)
    return Wish(
        text, short_text(body, "session"), short_text(body, "release_id"), read_requires(body.get("requires")),
        _client(body.get("client")),
    )  # fmt: skip


def check_text(what: str, text: str) -> None:
    found = find_credentials(text)
    if found:
        raise InvalidInput(f"{what} holds something shaped like a credential ({found[0]})", "name it, do not paste it")
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise InvalidInput(f"{what} holds characters that are not text")
    if any(pattern.search(text) for pattern in _OVERRIDES):
        raise InvalidInput(f"{what} reads like an instruction to override instructions", "say what should change")


def short_text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 200:
        raise InvalidInput(f"{name!r} is not a string of at most 200 characters")
    check_text(repr(name), value)
    return value


def read_requires(value: object) -> list[dict[str, Any]]:
    """Check what a change needs of a machine. Raises InvalidInput that names the rule."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MOST_REQUIRES:
        raise InvalidInput(f"'requires' is not a list of at most {_MOST_REQUIRES} items")
    return [_requirement(item) for item in value]


def _requirement(item: object) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"].strip():
        raise InvalidInput("an item of 'requires' needs a 'name'")
    if item.get("kind") not in _KINDS:
        raise InvalidInput(f"an item of 'requires' has none of the kinds {', '.join(_KINDS)}")
    kept: dict[str, Any] = {"name": item["name"], "kind": item["kind"]}
    for field in ("check", "prompt"):
        if item.get(field) is not None:
            if not isinstance(item[field], str) or len(item[field]) > 200:
                raise InvalidInput(f"{field!r} of an item of 'requires' is not a string of at most 200 characters")
            kept[field] = item[field]
    for field in ("name", "check", "prompt"):
        check_text(f"{field!r} of an item of 'requires'", kept.get(field, ""))
    if item["kind"] == "env" and _SHELL_NAME.match(kept.get("check") or kept["name"]) is None:
        raise InvalidInput("an item of 'requires' of kind env does not name a variable")
    return kept


def _client(value: object) -> dict[str, Any] | None:
    """What the asking machine says about itself; informational, so a bad shape is left out."""
    if not isinstance(value, dict):
        return None
    kept: dict[str, Any] = {
        name: value[name] for name in ("platform", "arch", "release")
        if isinstance(value.get(name), str) and len(value[name]) <= 100
    }  # fmt: skip
    commands = value.get("commands")
    if isinstance(commands, dict) and len(commands) <= 64:
        kept["commands"] = {str(name)[:64]: there for name, there in commands.items() if isinstance(there, bool)}
    return kept or None
