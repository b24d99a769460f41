"""New processes of Python programs that need not load the libraries again.

One process imports the libraries (never a module of ours), then forks for each program that is asked of it: `Started`
has its own environment, folder and streams, imports our modules itself and ends like any interpreter. An interpreter
takes a third of a second for those libraries alone, and a run of the tests starts many hundreds. What a start loads and
how long it takes is for tests that start an interpreter of their own.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARIES = ("typer.main", "typer._adapters", "pydantic.type_adapter", "yaml", "httpx", "sqlite3", "concurrent.futures")
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def run(
    entry: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None, stdin: bytes, seconds: float
) -> tuple[int, bytes, bytes]:
    """Run a program with its streams in pipes. Returns its status and what it printed, once no process holds them."""
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    mine = [pipes[0][1], pipes[1][0], pipes[2][0]]
    try:
        started = Started(entry, argv, env, cwd, theirs)
    finally:
        for number in theirs:
            os.close(number)
    try:
        out, err = _converse(mine, stdin, time.monotonic() + seconds)
        return started.wait(seconds), out, err
    except TimeoutError:
        started.kill()
        raise


def _converse(mine: list[int], stdin: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Write `stdin` and read both outputs to their ends; closes all three."""
    got: dict[int, list[bytes]] = {mine[1]: [], mine[2]: []}
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        selector.register(mine[0], selectors.EVENT_WRITE)
        for number in got:
            selector.register(number, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError(f"it still runs, and printed {got}")
                for key, _ in ready:
                    if key.fd == mine[0]:
                        rest = _written(key.fd, rest)
                        done = not rest
                    else:
                        block = os.read(key.fd, 65536)
                        got[key.fd].append(block)
                        done = not block
                    if done:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        finally:
            for number in list(selector.get_map() or ()):
                os.close(number)
    return b"".join(got[mine[1]]), b"".join(got[mine[2]])


def _written(number: int, rest: memoryview) -> memoryview:
    try:
        # No more than a pipe takes at once: a write never blocks.
        return rest[os.write(number, rest[: select.PIPE_BUF]) :] if rest else rest
    except BrokenPipeError:
        return rest[:0]


class Started:
    """One program that runs, or has ended.

    `entry` is `module:function`, whose value becomes the exit status, or a module that runs as `python -m` runs it.
    """

    def __init__(
        self,
        entry: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None,
        streams: Sequence[int],
        on_terminal: bool = False,
    ) -> None:
        """`streams` are stdin, stdout and stderr; the caller closes them. `on_terminal` makes stdin its terminal."""
        asked = {"entry": entry, "argv": list(argv), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        at_start = {name: value for name, value in env.items() if name.startswith(("PYTHON", "LC_", "LANG"))}
        self._status = _nursery(frozenset(at_start.items())).start({**asked, "on_terminal": on_terminal}, streams)
        self.pid = int(self._line())
        self.returncode: int | None = None

    def _line(self) -> str:
        found = b""
        while not found.endswith(b"\n"):
            block = self._status.recv(1)
            if not block:
                raise RuntimeError("the process that forks has ended")
            found += block
        return found.decode()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended; negative is the signal that ended it."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            self.returncode = int(self._line())
            self._status.close()
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


class _Nursery:
    """The outside of the process that forks. It ends with this one."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
            nothing = subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=env, pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing
            )

    def start(self, asked: dict[str, Any], streams: Sequence[int]) -> socket.socket:
        """Have a program started. Returns the socket that says its pid and, at its end, its status."""
        mine, theirs = socket.socketpair()
        text = json.dumps(asked).encode()
        with theirs, self._lock:
            socket.send_fds(self._control, [len(text).to_bytes(4, "big")], [*streams, theirs.fileno()])
            self._control.sendall(text)
        return mine


@functools.cache
def _nursery(at_start: frozenset[tuple[str, str]]) -> _Nursery:
    """One for each set of the variables that an interpreter reads when it starts, and never again."""
    return _Nursery(dict(at_start))


# --- inside ----------------------------------------------------------------------------------------------------


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for what is asked. Returns in each fork what was asked of it, and in the first process at the very end."""
    wake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while True:
            ready = [key.fd for key, _ in selector.select()]
            if wake in ready:
                os.read(wake, 4096)
                _tell_ends(running)
            if control.fileno() not in ready:
                continue
            head, given, _, _ = socket.recv_fds(control, 4, 4)
            if not head:
                return None
            asked: dict[str, Any] = json.loads(_exactly(control, int.from_bytes(head, "big")))
            status = socket.socket(fileno=given.pop())
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for held in (control, status, *running.values()):
                    held.close()
                return asked | {"streams": given}
            running[pid] = status
            status.sendall(f"{pid}\n".encode())
            for number in given:
                os.close(number)


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, raw = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with closing(running.pop(pid)) as status:
            try:
                status.sendall(f"{os.waitstatus_to_exitcode(raw)}\n".encode())
            except BrokenPipeError:
                continue


def _exactly(control: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += control.recv(size - len(found))
    return found


def _become(asked: dict[str, Any]) -> None:
    """Take on what an interpreter has of its own: streams, folder, environment, arguments."""
    if asked["on_terminal"]:
        os.setsid()
        os.close(os.open(os.ttyname(asked["streams"][0]), os.O_RDWR))
    for number, given in enumerate(asked["streams"]):
        os.dup2(given, number)
    os.closerange(3, 256)
    for number, (name, mode) in enumerate(_STREAMS):
        old = getattr(sys, name)
        lines = 1 if name == "stderr" else -1
        made = open(number, mode, lines, old.encoding, old.errors, "\n", closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    sys.argv[:] = asked["argv"]
    sys.path[0] = str(Path(sys.executable).parent)


def _run(asked: dict[str, Any]) -> Any:
    module, _, function = asked["entry"].partition(":")
    if function:
        return getattr(importlib.import_module(module), function)()
    return runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    found = _serve(socket.socket(fileno=int(sys.argv[1])))
    if found is not None:
        _become(found)
        sys.exit(_run(found))
