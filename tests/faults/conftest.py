"""Daemons with the scripted model server behind them, as the tests of the HTTP surface have them."""

from __future__ import annotations

from tests.http.conftest import new_home, upstream

__all__ = ["new_home", "upstream"]
