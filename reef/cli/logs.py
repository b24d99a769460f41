"""`reef logs`: the daemon's own log, also while it is down."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from reef.cli import output
from reef.cli.group import command, single
from reef.errors import NotFound
from reef.paths import Paths
from reef.text import safe

app = single()
_BLOCK = 64 * 1024
_POLL_S = 0.25


@command(app, examples=("reef logs -n 200", "reef logs -f"))
def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines are written, until Ctrl-C.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="COUNT", min=0, help="How many of the last lines.")
    ] = 50,
) -> None:
    """Show the daemon's log.

    It is read from the file, so it works while the daemon is down. The file holds no request, no reply and no key;
    `reef paths` says where it is.
    """
    place = Paths.from_environ().daemon_log
    if not place.is_file():
        raise NotFound(f"there is no log yet ({place})", "reef up")
    found, end = last_lines(place, lines)
    for line in found:
        output.data(safe(line))
    if follow:
        output.flush()
        for line in lines_from(place, end):
            output.data(safe(line))
            output.flush()


def last_lines(place: Path, count: int) -> tuple[list[str], int]:
    """The last `count` whole lines of a file, read from its end, and the place in the file where they end."""
    with place.open("rb") as file:
        start = file.seek(0, os.SEEK_END)
        held = b""
        while start > 0 and held.count(b"\n") <= count:
            begin = max(0, start - _BLOCK)
            file.seek(begin)
            held = file.read(start - begin) + held
            start = begin
    whole = held[: held.rfind(b"\n") + 1]
    found = whole.decode("utf-8", "replace").split("\n")[:-1]
    return (found[-count:] if count else []), start + len(whole)


def lines_from(place: Path, start: int) -> Iterator[str]:
    """Each line after byte `start` as it is written, across a rotation of the file."""
    file = place.open("rb")
    try:
        file.seek(start)
        kept = b""
        while True:
            block = file.read()
            kept += block
            *whole, kept = kept.split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
            if block:
                continue
            time.sleep(_POLL_S)
            if _replaced(file.fileno(), place, file.tell()):
                file.close()
                file = place.open("rb")
                kept = b""
    finally:
        file.close()


def _replaced(handle: int, place: Path, read: int) -> bool:
    try:
        now = place.stat()
    except FileNotFoundError:
        return False
    return now.st_ino != os.fstat(handle).st_ino or now.st_size < read
