"""Daemons with the scripted model server behind them, as the tests of the HTTP surface have them."""

from __future__ import annotations

from tests.http.conftest import home, new_home, upstream

__all__ = ["home", "new_home", "upstream"]
