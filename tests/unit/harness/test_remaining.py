"""What an agent leaves running ends with it; what a person started elsewhere does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from reef.harness.remaining import end_remaining

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only /proc shows whose a program is")

TOKEN = "a-token-of-this-test-alone"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 60; done"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a shell line that says `ready`, with more variables."""
    started: list[subprocess.Popen[str]] = []

    def begin(line: str, **more: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            ["sh", "-c", line], env=os.environ | more, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(child)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        return child

    yield begin
    for child in started:
        child.kill()
        child.communicate()


def test_programs_of_the_session_end_and_all_others_stay(start: Start) -> None:
    willing = start("echo ready; exec sleep 60", REEF_SESSION=TOKEN)
    bystander = start("echo ready; exec sleep 60")
    of_another = start("echo ready; exec sleep 60", REEF_SESSION=TOKEN + "-2")
    assert len(end_remaining(TOKEN)) == 1
    assert willing.wait(5) == -15
    assert bystander.poll() is None and of_another.poll() is None


def test_a_program_that_does_not_end_when_asked_is_made_to(start: Start) -> None:
    stubborn = start(STUBBORN, REEF_SESSION=TOKEN)
    # What the shell runs at that moment may have ended by itself, or not have begun.
    assert "sh" in end_remaining(TOKEN, patience_s=0.1)
    assert stubborn.wait(5) == -9


def test_a_program_that_stands_still_is_ended_too(start: Start) -> None:
    still = start("echo ready; kill -STOP $$; exec sleep 60", REEF_SESSION=TOKEN)
    os.waitpid(still.pid, os.WUNTRACED)
    assert "sh" in end_remaining(TOKEN)
    assert still.wait(5) == -15


def test_nothing_of_a_session_without_programs_is_ended() -> None:
    assert end_remaining("no such token") == []
