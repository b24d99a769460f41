"""Running an agent as a child that does not notice: same terminal, same signals, same exit status.

The agent stays in the wrapper's process group, so the terminal signals it directly. A key like Ctrl-C therefore reaches
it once without any help; passing it on would make it two, and a second one turns a graceful stop into an abrupt one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from reef.errors import Failed
from reef.harness.terminal import Terminal
from reef.processes import family

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_TO_ONE_PROCESS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_STOPPED_S = 2.0
_REDRAWN_S = 0.1


class Agent:
    """The agent of one launch, as another thread may hold it still."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.held = False
        self.stopped = threading.Event()
        """Set by whoever waits for the agent, once it has seen that the agent stands still."""
        self.ended: Callable[[], None] | None = None
        """Called when the agent is gone, before its terminal is put back."""

    @contextmanager
    def still(self, redraw: bool = False) -> Iterator[None]:
        """The agent, and what it started on this terminal, stand still meanwhile. `redraw`: it must draw itself anew.

        The shell above sees nothing of it.
        """
        if self.pid is None:
            yield
            return
        self.stopped.clear()
        self.held = True
        members = _on_terminal(self.pid)
        _signal(members, signal.SIGSTOP)
        self.stopped.wait(_STOPPED_S)
        try:
            yield
        finally:
            self.held = False
            # The same ones: they are nobody's children any more when the agent has been killed meanwhile.
            _signal(members, signal.SIGCONT)
            if redraw:
                _resize_once()


def launch(argv: list[str], environment: Mapping[str, str], agent: Agent | None = None) -> int:
    """Run `argv` in this terminal and directory and return its exit status; 128 + n when signal n ended it.

    Raises Failed when the program cannot be started.
    """
    terminal = Terminal()
    try:
        agent = agent or Agent()
        status = _run(argv, environment, terminal, agent)
        if agent.ended is not None:
            agent.ended()
        terminal.restore(killed=status < 0)
    finally:
        terminal.close()
    return 128 - status if status < 0 else status


def _on_terminal(pid: int) -> list[int]:
    """`pid` and everything below it that shares this process's group, and so the terminal's keys."""
    group, found = os.getpgrp(), []
    for member in family(pid):
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(member) == group:
                found.append(member)
    return found


def _signal(members: list[int], number: signal.Signals) -> None:
    for member in members:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member, number)


def _resize_once() -> None:
    """Tell the agent twice that the terminal has another size, the second time the right one."""
    with suppress(OSError, termios.error):
        file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            rows, columns = termios.tcgetwinsize(file)
            termios.tcsetwinsize(file, (max(1, rows - 1), columns))
            time.sleep(_REDRAWN_S)
            termios.tcsetwinsize(file, (rows, columns))
        finally:
            os.close(file)


def _run(argv: list[str], environment: Mapping[str, str], terminal: Terminal, agent: Agent) -> int:
    """The agent's exit status, negative for the signal that ended it."""
    running: list[subprocess.Popen[bytes]] = []
    waiting: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if running:
            running[0].send_signal(number)
        else:
            waiting.append(number)

    def from_terminal(number: int, frame: FrameType | None) -> None:
        if not terminal.is_foreground:
            pass_on(number, frame)

    # Handlers, not SIG_IGN: a signal that is ignored stays ignored in the agent. One that was ignored already is left.
    before = {
        number: _handle(number, from_terminal if number in _FROM_TERMINAL else pass_on)
        for number in (*_FROM_TERMINAL, *_TO_ONE_PROCESS)
    }
    try:
        try:
            running.append(subprocess.Popen(argv, env=dict(environment), close_fds=True))
        except OSError as error:
            raise Failed(f"{argv[0]} cannot be started: {error.strerror}", "reef agents list") from None
        agent.pid = running[0].pid
        for number in waiting:
            running[0].send_signal(number)
        return _wait(running[0], agent)
    finally:
        for number, old in before.items():
            if old is not None:
                signal.signal(number, old)


def _handle(
    number: int, handler: Callable[[int, FrameType | None], None]
) -> signal.Handlers | Callable[..., object] | None:
    old = signal.getsignal(number)
    if old is signal.SIG_IGN:
        return None
    signal.signal(number, handler)
    return old if callable(old) else signal.SIG_DFL


def _wait(child: subprocess.Popen[bytes], agent: Agent) -> int:
    while True:
        pid, status = os.waitpid(child.pid, os.WUNTRACED)
        if pid != child.pid:
            continue
        if os.WIFSTOPPED(status) and agent.held:
            agent.stopped.set()
            continue
        if os.WIFSTOPPED(status):
            # The agent stopped itself: the shell waits for this process and must see it stop as well.
            os.kill(os.getpid(), signal.SIGSTOP)
            child.send_signal(signal.SIGCONT)
            continue
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode
