"""In a real terminal: the records are there, hostile text does not get out, copying says where it went, q ends it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.paths import Paths
from reef.tui import clipboard
from tests.fakes.daemon_fake import DaemonFake, version_row

ROOT = Path(__file__).parents[2]
START = "from reef.tui.app import run; raise SystemExit(run())"


def environ(**more: str) -> dict[str, str]:
    """The environment of the child: this test's sealed one, and a terminal."""
    return {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)} | more


class Terminal:
    """The app in a pseudo-terminal of 120 x 40."""

    def __init__(self, **env: str) -> None:
        import fcntl
        import struct
        import termios

        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", START], stdin=theirs, stdout=theirs, stderr=theirs, env=environ(**env)
        )
        os.close(theirs)
        self.seen = b""

    def read_until(self, wanted: bytes, seconds: float = 20) -> bytes:
        deadline = time.monotonic() + seconds
        while wanted not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += os.read(self.ours, 65536)
        return self.seen

    def drain(self, quiet: float = 0.4) -> None:
        """Read until nothing was painted for that many seconds."""
        while select.select([self.ours], [], [], quiet)[0]:
            self.seen += os.read(self.ours, 65536)

    def keys(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def end(self) -> int:
        self.keys("q")
        deadline = time.monotonic() + 15
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.ours], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.ours, 65536)
                except OSError:
                    break
        status = self.process.wait(10)
        os.close(self.ours)
        return status


def test_no_sequence_of_a_record_reaches_the_terminal(paths: Paths, fake: DaemonFake) -> None:
    evil = "before \x1b]52;c;cm0gLXJm\x1b\\ \x1b]0;owned\x07 \x9b31m after"
    fake.add_record(evil, quiet=True)
    terminal = Terminal()
    terminal.read_until("before ␛]52".encode())
    terminal.keys("2")
    terminal.read_until(b"first byte")
    terminal.keys("\r")
    terminal.drain()
    assert terminal.end() == 0
    assert b"]52;c;cm0" not in terminal.seen.replace("␛]52;c;cm0".encode(), b"")
    assert b"\x1b]0;owned" not in terminal.seen and b"\x9b31m" not in terminal.seen.replace("\ufffd".encode(), b"")


def test_no_color_sends_no_colour_code(paths: Paths, busy: DaemonFake) -> None:
    terminal = Terminal(NO_COLOR="1")
    terminal.read_until(b"why is the build")
    assert terminal.end() == 0
    assert b"38;2;" not in terminal.seen and b"48;2;" not in terminal.seen and b"38;5;" not in terminal.seen


def test_a_copied_receipt_goes_out_as_osc_52_and_the_notice_says_so(paths: Paths, busy: DaemonFake) -> None:
    terminal = Terminal()
    terminal.read_until(b"why is the build")
    terminal.keys("2")
    terminal.read_until(b"first byte")
    terminal.keys("y")
    terminal.read_until(b"(OSC 52)")
    assert terminal.end() == 0
    assert b"\x1b]52;c;" in terminal.seen


def test_quitting_does_not_wait_for_a_daemon_that_hangs(paths: Paths, busy: DaemonFake) -> None:
    terminal = Terminal()
    terminal.read_until(b"why is the build")
    busy.hang = True
    terminal.keys("2")
    terminal.read_until(b"following")
    started = time.monotonic()
    assert terminal.end() == 0
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("size", ((80, 24), (120, 40)))
def test_tmux_shows_the_records(
    paths: Paths, busy: DaemonFake, tmp_path: Path, need_tool: Callable[[str], str], size: tuple[int, int]
) -> None:
    tmux = [need_tool("tmux"), "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    command = f"{sys.executable} -c '{START}'"
    start = [*tmux, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), command]
    subprocess.run(start, check=True, env=environ(TERM="screen-256color"))
    try:
        deadline, shown = time.monotonic() + 20, ""
        while "why is the" not in shown or "● up" not in shown:
            assert time.monotonic() < deadline, shown
            time.sleep(0.2)
            shown = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
        subprocess.run([*tmux, "send-keys", "2"], check=True)
        while "2 Traces" not in shown or "v14 · qwen3:8b" not in shown:
            assert time.monotonic() < deadline, shown
            time.sleep(0.2)
            shown = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
        assert max(len(line) for line in shown.split("\n")) <= size[0]
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def test_long_text_and_terminals_without_a_clipboard_get_a_private_file(paths: Paths) -> None:
    found = clipboard.place("x" * 200_000, "trace.txt", paths, {"TERM": "xterm"})
    assert found.path is not None and found.path.read_text() == "x" * 200_000 and "50 kB" in found.why
    assert found.path.stat().st_mode & 0o077 == 0
    assert clipboard.place("short", "id.txt", paths, {"TERM": "xterm"}).path is None
    for env in ({}, {"TERM": "dumb"}, {"TERM": "linux"}, {"TERM": "xterm", "TERM_PROGRAM": "Apple_Terminal"}):
        assert clipboard.place("short", "id.txt", paths, env).path == paths.state / "copied" / "id.txt"


def test_a_bisection_is_asked_for_in_the_same_terminal_and_the_screen_comes_back(
    paths: Paths, fake: DaemonFake
) -> None:
    fake.versions += [version_row(number, "a rule", current=number == 4) for number in range(1, 5)]
    terminal = Terminal()
    terminal.read_until(b"Now")
    terminal.keys("5")
    terminal.read_until(b"head v4")
    terminal.keys("b")
    terminal.read_until(b"v2: t try it, g good, b bad, s skip, q leave")
    terminal.keys("q\r")
    terminal.read_until(b"press enter to go back to reef")
    terminal.seen = b""
    terminal.keys("\r")
    terminal.read_until(b"head v4")
    assert terminal.end() == 0
    assert (paths.state / "bisect" / "default.json").is_file()
