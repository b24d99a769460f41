"""The sealed room: every test has its own home, no user configuration, no key, no colour, no proxy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.paths import Paths

KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "CI", "PYTHONPATH", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST")


@pytest.fixture(autouse=True)
def sealed_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HOME and REEF_HOME in the test's own folder; every other variable of the person's shell is gone."""
    for name in list(os.environ):
        if name not in KEPT and not name.startswith(("PYTEST_", "COV_", "PIP_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REEF_HOME", str(tmp_path / "reef"))
    monkeypatch.setenv("REEF_BIN_DIR", str(tmp_path / "bin"))
    monkeypatch.setenv("TZ", "UTC")
    yield home


@pytest.fixture
def paths(sealed_room: Path) -> Paths:
    """The paths of the test's own reef home, folders made."""
    found = Paths.from_environ()
    found.make()
    return found
