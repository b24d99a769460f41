"""Running a child process with a time limit and a cap on what is kept of its output."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reef.errors import Failed

_PIECE = 65536
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEFT_OPEN_S = 0.3
"""How long output is waited for after the process has ended: what it left in the background may hold the pipe."""


@dataclass(frozen=True)
class Ran:
    """How a child process ended."""

    status: int
    """Negative for the signal that ended it."""
    stdout: str
    stderr: str
    timed_out: bool


class _Kept:
    """The beginning and the end of a stream of bytes."""

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._head = b""
        self._tail = b""
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room] if room > 0 else b""
        rest = piece[room:] if room > 0 else piece
        self._tail = (self._tail + rest)[-self._half :]

    def text(self) -> str:
        cut = self._size - len(self._head) - len(self._tail)
        note = f"\n… {cut:,} bytes are left out here …\n".encode() if cut else b""
        return (self._head + note + self._tail).decode("utf-8", "replace")


def run_bounded(
    argv: Sequence[str],
    cwd: Path,
    timeout_s: float,
    most_bytes: int,
    given: bytes = b"",
    environ: Mapping[str, str] | None = None,
    together: bool = False,
) -> Ran:
    """Run `argv` with `given` on standard input. `together`: both streams in `stdout`, in their order.

    The child has a process group of its own, which is killed at the time limit and when the person interrupts. Raises
    Failed when the program cannot be started.
    """
    child: subprocess.Popen[bytes] | None = None
    # A signal that came while the child is being started would leave it behind, known to nobody.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with tempfile.TemporaryFile() as source:
            source.write(given)
            source.seek(0)
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=None if environ is None else dict(environ),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if together else subprocess.PIPE,
                start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _follow(child, timeout_s, most_bytes)
    except OSError as error:
        if child is None:
            raise Failed(f"{argv[0]} cannot be started: {error.strerror}") from None
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if child is not None:
            _close(child)


def _follow(child: subprocess.Popen[bytes], timeout_s: float, most_bytes: int) -> Ran:
    deadline = time.monotonic() + timeout_s
    kept: dict[int, _Kept] = {}
    timed_out = False
    ended_at: float | None = None
    with selectors.DefaultSelector() as selector:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                kept[stream.fileno()] = _Kept(most_bytes)
                selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            now = time.monotonic()
            if ended_at is None and child.poll() is not None:
                ended_at = now
            if ended_at is not None and now > ended_at + _LEFT_OPEN_S:
                break
            if now > deadline:
                timed_out = True
                _kill(child)
                break
            for key, _ in selector.select(0.05):
                piece = os.read(key.fd, _PIECE)
                if piece:
                    kept[key.fd].add(piece)
                else:
                    selector.unregister(key.fileobj)
    try:
        status = child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        timed_out = True
        _kill(child)
        status = child.wait()
    texts = [found.text() for found in kept.values()]
    return Ran(status, texts[0], texts[1] if len(texts) > 1 else "", timed_out)


def _close(child: subprocess.Popen[bytes]) -> None:
    """Let go of a child; one that still runs, because something was raised, is killed with its group."""
    if child.returncode is None:
        _kill(child)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
