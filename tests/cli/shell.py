"""Running the real `reef`: through pipes, or on a terminal that records every byte it is sent."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REEF = str(Path(sys.executable).parent / "reef")
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
    done = subprocess.run(
        [REEF, *arguments],
        input=stdin.encode(),
        capture_output=True,
        env={**({} if alone else os.environ), **(env or {})},
        cwd=cwd,
        timeout=_LIMIT_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def on_terminal(
    *arguments: str, keys: Sequence[tuple[str, str]] = (), env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """Run `reef` on a pseudo-terminal of 80 columns. `keys` are (text to wait for, what to type then).

    Returns the exit status and everything that the terminal got, byte for byte, line ends as `\\n`.
    """
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **(env or {})}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd or Path.cwd())
        os.execve(REEF, [REEF, *arguments], environment)
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
        os.kill(pid, 9)
    _, raw = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(raw), got.decode("utf-8", "replace").replace("\r\n", "\n")
