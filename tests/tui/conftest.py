"""What the tests of the screens share: a home with a stand-in daemon that holds a week of work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.sample import fill


@pytest.fixture
def fake(paths: Paths) -> Iterator[DaemonFake]:
    """A stand-in daemon without data."""
    with DaemonFake(paths) as found:
        yield found


@pytest.fixture
def busy(fake: DaemonFake) -> DaemonFake:
    """A stand-in daemon with a week of work."""
    fill(fake)
    return fake
