"""What one check found: a state, one sentence, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from reef.ids import stamp

State = Literal["ok", "warn", "bad"]
LATELY = timedelta(days=7)
"""How far back a check looks for what went wrong in calls."""


@dataclass(frozen=True)
class Check:
    """One line of `reef doctor`."""

    name: str
    state: State
    """`ok`; `warn`: look at it when you have the time; `bad`: reef cannot keep a promise like this."""
    sentence: str
    hint: str | None = None
    """A command to paste, where there is something to do."""


def lately() -> str:
    """The time from which on calls are looked at."""
    return stamp(datetime.now(UTC) - LATELY)


def counted(number: int, thing: str) -> str:
    """`1 call`, `12 calls`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    """Bytes in a unit that is easy to read: `61 MB` (powers of 1000)."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
