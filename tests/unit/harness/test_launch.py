"""Running an agent under a real terminal: signals once, exit status as it is, the terminal given back."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WRAP = "import os, sys; from reef.harness.launch import launch; sys.exit(launch(sys.argv[1:], os.environ))"

COUNTING = """
import signal, sys, time
count = 0
def seen(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, seen)
print("ready", flush=True)
until = time.monotonic() + 20
while not count and time.monotonic() < until:
    time.sleep(0.02)
time.sleep(0.5)
print("interrupts", count, flush=True)
sys.exit(7)
"""

MESSING = """
import sys, time, tty
sys.stdout.write("\\x1b[?1049h\\x1b[?1000h\\x1b[?1002h\\x1b[?1003h\\x1b[?1006h\\x1b[?2004h\\x1b[>1u\\x1b[?25l")
sys.stdout.flush()
tty.setraw(0)
sys.stdout.write("ready")
sys.stdout.flush()
time.sleep(60)
"""


class Screen:
    """A pseudo-terminal with a program in its foreground."""

    def __init__(self, argv: list[str]) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], argv)
        self.seen = b""

    def until(self, text: bytes, seconds: float = 30) -> bytes:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if not self._read(0.2):
                break
        assert text in self.seen, self.seen
        return self.seen

    def end(self, seconds: float = 30) -> int:
        """Read to the end; the exit status of the program."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._read(0.05):
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.file)

    def _read(self, seconds: float) -> bool:
        """Whether the program still holds the terminal."""
        if not select.select([self.file], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)


@pytest.fixture
def screens() -> Iterator[list[Screen]]:
    made: list[Screen] = []
    yield made
    for screen in made:
        screen.close()


def wrapped(program: str) -> list[str]:
    return [sys.executable, "-c", WRAP, sys.executable, "-c", program]


def test_ctrl_c_reaches_the_agent_once_and_its_exit_status_comes_back(screens: list[Screen]) -> None:
    screen = Screen(wrapped(COUNTING))
    screens.append(screen)
    screen.until(b"ready")
    os.write(screen.file, b"\x03")
    screen.until(b"interrupts")
    assert screen.end() == 7
    assert b"interrupts 1\r\n" in screen.seen


def test_a_killed_agent_leaves_the_terminal_as_it_was(screens: list[Screen], tmp_path: Path) -> None:
    child = tmp_path / "pid"
    program = f"import os; open({str(child)!r}, 'w').write(str(os.getpid()))\n" + MESSING
    screen = Screen(wrapped(program))
    screens.append(screen)
    before = termios.tcgetattr(screen.file)
    screen.until(b"ready")
    assert termios.tcgetattr(screen.file)[3] != before[3]
    os.kill(int(child.read_text()), signal.SIGKILL)
    assert screen.end() == 128 + signal.SIGKILL
    assert termios.tcgetattr(screen.file) == before
    tail = screen.seen.rpartition(b"ready")[2]
    for switch in (b"1000l", b"1002l", b"1003l", b"1006l", b"2004l", b"1049l", b"25h"):
        assert b"\x1b[?" + switch in tail
    assert b"\x1b[<u" in tail


def test_a_clean_end_writes_nothing_to_the_terminal(screens: list[Screen]) -> None:
    screen = Screen(wrapped("print('done')"))
    screens.append(screen)
    assert screen.end() == 0
    assert screen.seen == b"done\r\n"


def test_a_wrapper_that_is_stopped_and_continued_takes_the_agent_along(screens: list[Screen]) -> None:
    stopping = (
        "import os, signal; print('ready', flush=True); os.kill(os.getpid(), signal.SIGSTOP); print('back', flush=True)"
    )
    screen = Screen(wrapped(stopping))
    screens.append(screen)
    screen.until(b"ready")
    assert os.WIFSTOPPED(os.waitpid(screen.pid, os.WUNTRACED)[1])
    os.kill(screen.pid, signal.SIGCONT)
    screen.until(b"back")
    assert screen.end() == 0


@pytest.mark.parametrize(
    ("program", "status"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_status_passes_unchanged_without_a_terminal(program: str, status: int) -> None:
    done = subprocess.run(wrapped(program), start_new_session=True, timeout=60, check=False)
    assert done.returncode == status


def test_stdin_and_arguments_pass_unchanged() -> None:
    program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read() + repr(sys.argv[1:]).encode())"
    odd = ["", "a b", "'", "--", "-p", "é\n", "$HOME"]
    body = bytes(range(256))
    done = subprocess.run(
        [*wrapped(program), *odd], input=body, capture_output=True, start_new_session=True, timeout=60, check=True
    )
    assert done.stdout == body + repr(odd).encode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_wrapper_alone_is_passed_on(number: signal.Signals) -> None:
    program = (
        "import signal, sys, time\n"
        f"signal.signal({number.value}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\ntime.sleep(30)\nsys.exit(1)"
    )
    child = subprocess.Popen(wrapped(program), stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.wait(timeout=30) == 9
    child.stdout.close()


def test_a_signal_that_was_ignored_stays_ignored_in_the_agent() -> None:
    program = (
        "import signal\nhup, term = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)\n"
        "print(hup is signal.SIG_IGN, term is signal.SIG_DFL)"
    )
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *wrapped(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "True True\n"


def test_a_program_that_is_not_there_is_named() -> None:
    code = (
        "import os\nfrom reef.errors import Failed\nfrom reef.harness.launch import launch\n"
        "try:\n    launch(['/nowhere/pi'], os.environ)\nexcept Failed as error:\n    print(error.message)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "/nowhere/pi cannot be started: No such file or directory\n"
