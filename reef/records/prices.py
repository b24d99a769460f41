"""What a model costs: a dated table of list prices, and before it the person's own from `usage.prices`.

A model that neither knows has no price, which is not the price 0. What runs on this machine costs nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCAL_ENGINES = frozenset({"embedded", "hf", "sglang", "vllm"})
"""Engines that answer on this machine."""
_DATED = re.compile(r"[-@]?(?:20\d{6}|20\d\d-\d\d-\d\d)\Z|-latest\Z")
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input that came from the provider's cache; None: like the rest."""

    def of(self, prompt: int, cached: int, completion: int) -> float:
        """What these tokens cost; `cached` of the `prompt` came from the cache."""
        fresh = max(0, prompt - cached)
        dear = self.input if self.cached is None else self.cached
        return (fresh * self.input + cached * dear + completion * self.output) / _MILLION


_FREE = Price(0, 0)


class Prices:
    """The prices of models, by the names that replies give them."""

    def __init__(self, own: Mapping[str, Mapping[Any, float]] | None = None) -> None:
        """`own`: model to `{"input", "output", "cached"}`, as in the settings."""
        table = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
        self.checked: str = table["checked"]
        """The day of the table, as `2026-01-31`."""
        self._known = {name: Price(**price) for name, price in table["models"].items()}
        for name, price in (own or {}).items():
            cached = price.get("cached")
            self._known[name] = Price(price.get("input", 0), price.get("output", 0), cached)

    def of(self, model: str | None, engine: str | None = None) -> Price | None:
        """The price of a model: by its name, then without what a router puts before it or a date behind it."""
        if engine in LOCAL_ENGINES:
            return _FREE
        if not model:
            return None
        short = model.rpartition("/")[2]
        for name in (model, short, _DATED.sub("", short)):
            if name in self._known:
                return self._known[name]
        return None
