"""JSON as clients and servers really send it: fast where it is clean, and still read where it is only nearly so.

Half of a surrogate pair is legal JSON that a strict UTF-8 parser refuses; a relay must not be stricter than the two
ends that understand each other.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def parse(body: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises ValueError when it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            # Decoded here: given bytes, the parser would read UTF-16 too, in which nothing else here finds its way.
            return json.loads(body.decode("utf-8-sig", "surrogatepass"))
        except RecursionError:
            raise ValueError("nested too deep") from None


def dump(value: Any) -> bytes:
    """`value` as compact JSON; half a surrogate pair is escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def storable(text: str) -> str:
    """`text` as it can be stored: every half of a surrogate pair replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
