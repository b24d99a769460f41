"""Running the real `reef`: through pipes, or on a terminal that records every byte it is sent."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import warm

REEF = str(Path(sys.executable).parent / "reef")
_ENTRY = "reef.cli.app:main"
_LIMIT_S = 60


@dataclass(frozen=True)
class Ran:
    """How one command ended."""

    status: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


def reef(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
    alone: bool = False,
) -> Ran:
    """Run `reef` with its output in pipes. `alone` gives it `env` and nothing of this process's variables."""
    around = {**({} if alone else os.environ), **(env or {})}
    status, out, err = warm.run(_ENTRY, [REEF, *arguments], around, cwd, stdin.encode(), _LIMIT_S)
    return Ran(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def on_terminal(
    *arguments: str, keys: Sequence[tuple[str, str]] = (), env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """Run `reef` on a pseudo-terminal of 80 columns. `keys` are (text to wait for, what to type then).

    Returns the exit status and everything that the terminal got, byte for byte, line ends as `\\n`.
    """
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **(env or {})}
    terminal, theirs = pty.openpty()
    started = warm.Started(_ENTRY, [REEF, *arguments], environment, cwd, [theirs] * 3, on_terminal=True)
    os.close(theirs)
    waiting = list(keys)
    got = b""
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                block = os.read(terminal, 65536)
            except OSError:
                block = b""
            if not block:
                break
            got += block
        if waiting and waiting[0][0].encode() in got:
            os.write(terminal, waiting.pop(0)[1].encode())
    else:
        started.kill()
    status = started.wait()
    os.close(terminal)
    return status, got.decode("utf-8", "replace").replace("\r\n", "\n")
