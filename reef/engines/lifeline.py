"""How a child process ends with its parent, however the parent ends: it watches the pipe that is its standard input."""

from __future__ import annotations

import os
import threading


def end_with_parent() -> None:
    """End this process at once when standard input closes. For processes in which nothing needs saving."""
    threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        continue
    os._exit(0)
