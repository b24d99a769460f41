"""Which version a person keeps installed for an agent: the one rule that store, daemon, wrapper and commands share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def pinned(pins: Iterable[Mapping[str, Any]], adapter: str | None) -> int | None:
    """The version that stays installed for `adapter`, out of the pins of one scenario: its own, else that of every
    agent (None); None when nothing is pinned."""
    by_adapter = {pin["adapter"]: int(pin["version"]) for pin in pins}
    return by_adapter.get(adapter, by_adapter.get(None))
