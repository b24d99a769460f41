"""The daemon's log file: 10 MB times five, no bodies, no headers, no exception texts.

An exception's message can hold what it failed on (a URL with a key in it, a piece of a body), so only its type and its
frames are written, and every line passes the credential filter.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Collection
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from reef.credentials import redact
from reef.paths import ensure_private, write_atomic
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


def forget_lines(path: Path, names: Collection[str]) -> int:
    """Take every line that holds one of `names` out of the log and its older files. Returns how many lines went."""
    handlers = [found for found in logging.getLogger().handlers if isinstance(found, RotatingFileHandler)]
    own = [found for found in handlers if Path(found.baseFilename) == path.absolute()]
    for handler in own:
        handler.acquire()
        handler.close()
    try:
        return sum(_without(file, names) for file in (path, *path.parent.glob(f"{path.name}.[0-9]*")))
    finally:
        for handler in own:
            # A closed handler opens its file again with the next line.
            handler.release()


def _without(path: Path, names: Collection[str]) -> int:
    if not names or not path.is_file():
        return 0
    wanted = [name.encode() for name in names]
    gone = 0
    lines = []
    for line in path.read_bytes().splitlines(keepends=True):
        if any(name in line for name in wanted):
            gone += 1
        else:
            lines.append(line)
    if gone:
        write_atomic(path, b"".join(lines))
    return gone


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
