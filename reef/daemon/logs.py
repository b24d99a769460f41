"""The daemon's log file: 10 MB times five, no bodies, no headers, no exception texts.

An exception's message can hold what it failed on (a URL with a key in it, a piece of a body), so only its type and its
frames are written, and every line passes the credential filter.
"""

from __future__ import annotations

import logging
import sys
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from reef.credentials import redact
from reef.paths import ensure_private
from reef.text import safe

_MAX_BYTES = 10_000_000
_FILES = 5
LIMIT_BYTES = _MAX_BYTES * _FILES
"""What the log may take on the disk."""


class _Formatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        line, _ = redact(super().format(record).encode("utf-8", "replace"))
        return safe(line.decode("utf-8", "replace"))

    def formatException(self, ei: Any) -> str:
        kind, _, frames = ei
        return "".join(traceback.format_tb(frames)) + (kind.__name__ if kind else "")


def log_to(path: Path, foreground: bool) -> None:
    """Send all logging to `path`, and in the foreground warnings to stderr as well."""
    ensure_private(path.parent)
    handler = RotatingFileHandler(path, maxBytes=_MAX_BYTES, backupCount=_FILES - 1, encoding="utf-8")
    path.chmod(0o600)
    handlers: list[logging.Handler] = [handler]
    if foreground:
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setLevel(logging.WARNING)
        handlers.append(terminal)
    for each in handlers:
        each.setFormatter(_Formatter())
    # A log that cannot be written, as on a full disk, is no reason to write a traceback beside it.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    # Both write request lines and header values at their own levels.
    for name in ("aiohttp.access", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
