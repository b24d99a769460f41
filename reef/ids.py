"""Ids, names and times: made here, checked here, never shortened here.

Ids are 16 random bytes: blobs in SQLite, 32 hex digits in HTTP and on the command line.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reef.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

_HEX_ID = re.compile(r"[0-9a-f]{32}\Z")
_SCENARIO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_MOST_RUNS = 12
_VERSION = re.compile(r"v?([1-9][0-9]{0,8})\Z")
# Several times are taken in every call; the text of a second is made once.
_second: tuple[int, str] = (0, "1970-01-01T00:00:00")


def _fresh_ids() -> Iterator[str]:
    """Ids from the system's randomness, fetched for many at once: asking for each is most of what one costs."""
    while True:
        text = os.urandom(16 * 256).hex()
        for place in range(0, len(text), 32):
            yield text[place : place + 32]


class _Ids(threading.local):
    """One supply for each thread: a generator cannot serve two at once."""

    def __init__(self) -> None:
        self.fresh = _fresh_ids()


_ids = _Ids()


def _forget_ids() -> None:
    _ids.fresh = _fresh_ids()


# A forked child would make its parent's next ids over again.
os.register_at_fork(after_in_child=_forget_ids)


def new_id() -> str:
    """A new id of 32 hex digits (128 random bits)."""
    return next(_ids.fresh)


def new_token() -> str:
    """A secret of 256 random bits, safe in a header."""
    return "reef-" + secrets.token_urlsafe(32)


def is_id(text: object) -> bool:
    """Whether `text` is an id: 32 lower-case hex digits."""
    return isinstance(text, str) and _HEX_ID.match(text) is not None


def to_blob(hex_id: str) -> bytes:
    """The 16 bytes of an id. Raises InvalidInput when `hex_id` is not 32 hex digits."""
    if not is_id(hex_id):
        raise InvalidInput(f"{hex_id!r} is not an id of 32 hex digits")
    return bytes.fromhex(hex_id)


def from_blob(blob: bytes) -> str:
    """The 32 hex digits of 16 stored bytes."""
    return blob.hex()


def suggest_scenario_name(name: str) -> str:
    """A valid scenario name close to `name`."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    cleaned = re.sub(r"\.{2,}", ".", cleaned)[:64].strip("-._")
    if cleaned.lower().endswith(".lock"):
        cleaned = cleaned[: -len(".lock")] + "-lock"
    return cleaned if cleaned and cleaned.upper() != "HEAD" else "my-scenario"


def scenario_name(name: object) -> str:
    """Check a scenario name and return it unchanged.

    1-64 of `[A-Za-z0-9._-]`, first a letter or digit, no `..`, not ending in `.` or `.lock`, not `HEAD`: it is
    also the name of a git branch. Raises InvalidInput with a suggestion.
    """
    if isinstance(name, str) and _SCENARIO.match(name):
        bad_end = name.endswith(".") or name.lower().endswith(".lock")
        if not bad_end and ".." not in name and name.upper() != "HEAD":
            return name
    shown = name if isinstance(name, str) else type(name).__name__
    raise InvalidInput(
        f"{shown!r} is not a scenario name (1 to 64 letters, digits, '.', '_' or '-', first a letter or digit)",
        f"use {suggest_scenario_name(shown)!r}",
    )


def version_number(label: str | int) -> int:
    """`"v3"`, `"3"` or `3` as 3. Raises InvalidInput for anything else."""
    match = _VERSION.match(str(label))
    if match is None:
        raise InvalidInput(f"{str(label)!r} is not a version (v1, v2, …)", "reef versions list")
    return int(match.group(1))


def spans(letter: str, numbers: Iterable[int]) -> str:
    """Numbers in few words, for a sentence that says what there is: `v1 to v8, v10`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{letter}{low}" if low == high else f"{letter}{low} to {letter}{high}" for low, high in runs]
    return ", ".join(["…", *shown[-_MOST_RUNS:]] if len(shown) > _MOST_RUNS else shown)


def utc_now() -> str:
    """The time now as RFC 3339 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`."""
    global _second
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    known = _second
    if known[0] != second:
        known = _second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{known[1]}.{millisecond:03d}Z"


def stamp(at: datetime) -> str:
    """Any time in the same form, so that the two compare as text. Raises OverflowError beyond the calendar's ends."""
    from datetime import UTC

    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
