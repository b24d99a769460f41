"""Copying: to the terminal's clipboard (OSC 52) where that can work, else to a file, and always saying which."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reef.paths import Paths, ensure_private, write_atomic

MOST_BYTES = 50_000
"""Terminals drop clipboard writes that are longer than about 75 kB after encoding."""


@dataclass(frozen=True)
class Copied:
    """Where the text goes: to the terminal when `path` is None."""

    path: Path | None
    why: str


def no_clipboard(environ: Mapping[str, str] | None = None) -> str:
    """Why the terminal's clipboard cannot be reached; empty when it may be."""
    env = os.environ if environ is None else environ
    if env.get("TERM") in (None, "dumb", "linux"):
        return "this terminal has no clipboard"
    if env.get("TERM_PROGRAM") == "Apple_Terminal":
        return "Terminal.app takes no clipboard from programs"
    if env.get("TMUX") and shutil.which("tmux") is not None:
        asked = subprocess.run(
            ["tmux", "show-options", "-sv", "set-clipboard"], capture_output=True, text=True, timeout=2, check=False
        )
        if asked.stdout.strip() == "off":
            return "tmux has set-clipboard off"
    return ""


def place(text: str, name: str, paths: Paths, environ: Mapping[str, str] | None = None) -> Copied:
    """Decide where `text` goes; what cannot go to the terminal is written to a private file called `name`."""
    why = f"longer than {MOST_BYTES // 1000} kB" if len(text.encode()) > MOST_BYTES else no_clipboard(environ)
    return Copied(write(text, name, paths), why) if why else Copied(None, "")


def write(text: str, name: str, paths: Paths) -> Path:
    """Write `text` to a private file in reef's state folder and return its path."""
    path = ensure_private(paths.state / "copied") / name
    write_atomic(path, text.encode("utf-8", "replace"))
    return path
