"""Running the programs that fetch an agent: npm, uv and pip, with a word from time to time that they still run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from reef.errors import Failed

Progress = Callable[[str], None]
_INSTALL_S = 900
_BEAT_S = 5.0


def run_installer(
    argv: list[str], folder: Path, environ: Mapping[str, str], title: str, progress: Progress
) -> tuple[int, str]:
    """Run one in `folder` to its end. Returns its exit status and all that it said.

    Raises Failed when it does not end at all.
    """
    name = Path(argv[0]).name
    started = time.monotonic()
    child = subprocess.Popen(
        argv,
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    while True:
        try:
            said, _ = child.communicate(timeout=_BEAT_S)
            return child.returncode, said
        except subprocess.TimeoutExpired:
            if time.monotonic() - started > _INSTALL_S:
                child.kill()
                child.communicate()
                raise Failed(f"{name} did not end within {_INSTALL_S} s", "check the network, then try again") from None
            progress(f"still installing {title} ({time.monotonic() - started:.0f} s)")
