"""`reef usage --line`: one short line about today, for tmux or an agent's status line.

It is asked every few seconds, so it runs without typer, without HTTP, and reads nothing but counts of today.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from reef.cli import output
from reef.cli.look import OUT, counted
from reef.errors import NotFound, Unavailable
from reef.paths import Paths

_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k"))


def show() -> None:
    """Print the line; also where nothing was recorded yet."""
    from reef.records.reader import Reader

    paths = Paths.from_environ()
    reader = Reader(paths.database)
    try:
        total = reader.usage("model", own_prices(paths), _midnight(), times=False)["total"]
    except (NotFound, Unavailable):
        # Nothing was recorded, or a start that migrates the store is under way: a status line has no place for errors.
        output.data("reef –" if not OUT.ascii else "reef -")
        return
    finally:
        reader.close()
    output.data(line_of(total))


def line_of(total: dict[str, Any]) -> str:
    """`42 calls · 1.2M in · 30k out · $0.53`; the cost is left out where none is known."""
    failed = f"{total['failed']} failed" if total["failed"] else None
    tokens = f"{short(total['prompt_tokens'])} in", f"{short(total['completion_tokens'])} out"
    more = "+" if total["unpriced_calls"] and total["cost"] is not None else ""
    cost = dollars(total["cost"])
    return OUT.joined(counted(total["calls"], "call"), failed, *tokens, f"{cost}{more}" if cost else None)


def own_prices(paths: Paths) -> dict[str, Any]:
    """The person's own prices. The settings are only read where they may hold some."""
    try:
        text = paths.config_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    if "prices" not in text:
        return {}
    from reef.config import load

    return dict(load(paths=paths).settings.usage.prices)


def dollars(cost: float | None) -> str | None:
    """`$0.53`, with more digits below a cent; None when there is no cost."""
    if cost is None:
        return None
    return f"${cost:,.2f}" if cost >= 0.01 or cost == 0 else f"${cost:.4f}"


def short(number: int) -> str:
    """A number in few characters: `987`, `1.2M`."""
    for size, unit in _UNITS:
        if number >= size:
            amount = number / size
            return f"{amount:.1f}{unit}" if amount < 10 else f"{amount:.0f}{unit}"
    return str(number)


def _midnight() -> str:
    """The beginning of this day where the person is, as the store has times."""
    now = time.localtime()
    began = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    return f"{datetime.fromtimestamp(began, UTC):%Y-%m-%dT%H:%M:%S}.000Z"
