"""How long commands take to start, as multiples of an empty interpreter in the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.client import start_daemon, wait_stopped
from reef.paths import Paths

REEF = str(Path(sys.executable).parent / "reef")
ROUNDS = 7
HELP_AT_MOST = 9
STATUS_AT_MOST = 32


@pytest.fixture
def daemon(paths: Paths) -> Iterator[None]:
    """A daemon of this home whose model server is not there, which costs it nothing."""
    flags = [
        ["inference.backend", "upstream"],
        ["inference.upstream-url", "http://127.0.0.1:9"],
        ["inference.upstream-model", "none"],
        ["reef.port", "0"],
    ]
    found = start_daemon(paths, {"flags": flags})
    yield
    subprocess.run([REEF, "down", "--now"], check=True, capture_output=True)
    assert wait_stopped(found, paths, 20)


def seconds(*command: str) -> float:
    """How long one run of a command takes; it must end with 0."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def ratio(*command: str) -> float:
    """The median of a command over the median of an empty interpreter, runs taking turns."""
    empty, full = [], []
    for _ in range(ROUNDS):
        empty.append(seconds(sys.executable, "-c", "pass"))
        full.append(seconds(*command))
    found = statistics.median(full) / statistics.median(empty)
    print(f"{' '.join(command[1:])}: {statistics.median(full) * 1000:.0f} ms, {found:.1f} times an empty interpreter")
    return found


def test_help_is_at_most_9_times_an_empty_interpreter() -> None:
    assert ratio(REEF, "--help") <= HELP_AT_MOST


def test_status_is_at_most_32_times_an_empty_interpreter(daemon: None) -> None:
    assert ratio(REEF, "status") <= STATUS_AT_MOST
