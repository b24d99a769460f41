"""Credentials are replaced before anything is hashed and stored; apart from that a body is exact.

What a call is called by (its session, its model, its tags) passes the same filter as its body, on its way into the
store and into a search of the store alike, so that one name stays one name.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from reef import credentials
from reef.credentials import clean, clean_json


def redact(body: bytes, shaped: bool = True) -> tuple[bytes, int]:
    """`body` with credentials replaced by `[redacted:<kind>]`, and how many were replaced.

    `shaped=False` leaves what only looks like one; the secrets of this process are never stored.
    """
    return credentials.redact(body, shaped)


def kept(value: Any) -> Any:
    """`value` as SQLite can store it and as it may be stored: texts cleaned, a whole number of over 64 bits NULL."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value


def kept_json(value: Any) -> str | None:
    """`value` as JSON text without credentials, None as NULL; whole numbers of any length survive."""
    if value is None:
        return None
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        # Also for half a surrogate pair, which no reader of the store could be given.
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        text = written.encode("utf-8", "replace").decode()
    return kept_json_text(text)


def kept_json_text(text: str) -> str:
    """A JSON text without credentials, still JSON: no key reaches over the end of the string that it stands in."""
    if not redact(text.encode("utf-8", "replace"))[1]:
        return text
    return json.dumps(clean_json(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
