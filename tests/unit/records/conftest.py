"""A store in a temporary folder, with its writer and its reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.records.reader import Reader
from reef.records.writer import Writer


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "reef.db"


@pytest.fixture
def writer(store: Path) -> Iterator[Writer]:
    made = Writer(store)
    yield made
    made.close()


@pytest.fixture
def reader(writer: Writer) -> Iterator[Reader]:
    made = Reader(writer.path)
    yield made
    made.close()
