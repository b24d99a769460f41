"""What a step leaves in its folder: the log of what its processes print, and the files that its code writes.

The log is written by the daemon, from a pipe, so that a credential never reaches it. Files are the step's own while it
runs; when nothing of it is left they are looked through, because only the daemon knows which secrets it holds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from io import FileIO
from pathlib import Path

from reef.credentials import Sieve, redact
from reef.paths import write_atomic

log = logging.getLogger("reef.learning")

NAME = "output.log"
MAX_BYTES = 10_000_000
"""Bytes of one log; what is printed after them is lost."""
_CUT = b"\n(more was printed and is not kept)\n"
_PIECE = 64 * 1024
_MAX_FILE = 64 * 1024 * 1024


async def copy(handle: int, file: FileIO) -> None:
    """Write what comes from the pipe `handle` into `file` until its last writer has closed it; both are closed then."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_PIECE, loop=loop)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(handle, "rb", 0)
    )
    sieve, room = Sieve(), MAX_BYTES
    try:
        while piece := await reader.read(_PIECE):
            # What is printed too much is read all the same, or the step would stand still.
            room = _append(file, sieve.feed(piece), room) if room > 0 else 0
    finally:
        transport.close()
        if room > 0:
            _append(file, sieve.rest(), room)
        file.close()


def _append(file: FileIO, text: bytes, room: int) -> int:
    """Write `text` and return how many bytes may still be written."""
    try:
        file.write(text if len(text) < room else text[:room] + _CUT)
    except OSError as error:
        log.warning("the log of a step cannot be written: %s", error.strerror)
        return 0
    return room - len(text)


def sweep(folder: Path) -> None:
    """Cut credentials out of every file of a step whose processes have all ended."""
    if folder.is_symlink():
        log.warning("the folder of a step is a link now, and what it leads to is left alone: %s", folder)
        return
    for place, _, names in os.walk(folder):
        for name in names:
            _sweep_file(Path(place, name))


def _sweep_file(file: Path) -> None:
    facts = file.lstat()
    if not stat.S_ISREG(facts.st_mode) or file.name == NAME:
        return
    if facts.st_size > _MAX_FILE:
        log.warning("a file of a step is too large to be searched for credentials: %s", file)
        return
    try:
        changed, count = redact(file.read_bytes())
        if count:
            write_atomic(file, changed)
    except OSError as error:
        log.warning("a file of a step cannot be searched for credentials: %s: %s", file, error.strerror)
