"""B63 and B64: one interrupt is one interrupt, and a terminal is given back as it was, whatever went wrong on it."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reef.client import Client
from reef.harness.adapter import load_adapter
from reef.paths import Paths
from tests.fakes.agent_place import place_program
from tests.http.running import Home

ROOT = Path(__file__).parents[2]
OFF = ("1000l", "1002l", "1003l", "1006l", "2004l", "1049l", "25h")
AGENT = """
import os, signal, sys, time, tty
count = 0
def seen(number, frame):
    global count
    count += 1
if sys.argv[1:] == ["count"]:
    signal.signal(signal.SIGINT, seen)
    print("ready", flush=True)
    until = time.monotonic() + 20
    while not count and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)
    print("interrupts", count, flush=True)
    sys.exit(7)
sys.stdout.write("\\x1b[?1049h\\x1b[?1000h\\x1b[?1002h\\x1b[?1003h\\x1b[?1006h\\x1b[?2004h\\x1b[>1u\\x1b[?25l")
sys.stdout.flush()
tty.setraw(0)
sys.stdout.write("ready")
sys.stdout.flush()
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""
BROKEN_SCREENS = """
import sys
from reef.tui.app import ReefApp
def broken(self):
    raise RuntimeError("on purpose")
ReefApp.on_ready = broken
from reef.tui.app import run
sys.exit(run())
"""


class Screen:
    """A terminal with one program in its foreground, whose last words are kept."""

    def __init__(self, words: list[str], environ: dict[str, str]) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, environ | {"TERM": "xterm-256color", "LANG": "C.UTF-8"})
        self.before = termios.tcgetattr(self.file)
        self.seen = b""

    def until(self, text: bytes) -> None:
        deadline = time.monotonic() + 40
        while text not in self.seen and time.monotonic() < deadline and self._read():
            pass
        assert text in self.seen, self.seen

    def end(self) -> tuple[int, bytes]:
        """Exit status of the program, and all that it wrote."""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline and self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self.seen

    def _read(self) -> bool:
        if not select.select([self.file], [], [], 0.2)[0]:
            return True
        try:
            block = os.read(self.file, 65536)
        except OSError:
            return False
        self.seen += block
        return bool(block)


@pytest.fixture(scope="module")
def wrapped(home: Home) -> Home:
    """A home with an agent in pi's place that counts its interrupts, or turns everything on and is killed."""
    pi = load_adapter("pi", home.paths)
    place_program(pi, home.paths, AGENT)
    with Client.connect(home.paths, start=False) as client:
        list(client.install_harness("default", "pi", 1))
    return home


@pytest.fixture
def screen() -> Iterator[Callable[..., Screen]]:
    made: list[Screen] = []

    def start(words: list[str], environ: dict[str, str]) -> Screen:
        made.append(Screen([sys.executable, "-P", *words], environ))
        return made[-1]

    yield start
    for found in made:
        os.close(found.file)


def test_one_interrupt_character_is_one_interrupt_and_the_agents_status_comes_back(
    wrapped: Home, screen: Callable[..., Screen]
) -> None:
    found = screen(["-m", "reef.harness.wrapper", "pi", "count"], wrapped.env)
    found.until(b"ready")
    os.write(found.file, b"\x03")
    status, seen = found.end()
    assert (status, b"interrupts 1\r\n" in seen) == (7, True), seen


def test_an_agent_that_was_killed_leaves_no_mode_on_and_the_settings_back(
    wrapped: Home, screen: Callable[..., Screen]
) -> None:
    found = screen(["-m", "reef.harness.wrapper", "pi", "mess"], wrapped.env)
    found.until(b"ready")
    assert termios.tcgetattr(found.file)[3] != found.before[3]
    status, seen = found.end()
    assert status == 128 + signal.SIGKILL
    tail = seen.rpartition(b"ready")[2]
    assert [mode for mode in OFF if f"\x1b[?{mode}".encode() not in tail] == []
    assert b"\x1b[<u" in tail
    assert termios.tcgetattr(found.file) == found.before


def test_screens_of_reefs_own_that_fail_leave_no_mode_on_and_the_settings_back(
    paths: Paths, screen: Callable[..., Screen]
) -> None:
    found = screen(["-c", BROKEN_SCREENS], dict(os.environ) | {"PYTHONPATH": str(ROOT)})
    status, seen = found.end()
    assert status != 0
    turned_on = {mode for mode in ("1000", "1003", "1006", "1015", "2004", "1049") if f"\x1b[?{mode}h".encode() in seen}
    assert turned_on
    left = [mode for mode in turned_on if seen.rfind(f"\x1b[?{mode}h".encode()) > seen.rfind(f"\x1b[?{mode}l".encode())]
    assert left == []
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")
    assert termios.tcgetattr(found.file) == found.before
