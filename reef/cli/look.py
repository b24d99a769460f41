"""How text looks: colours, symbols and their ASCII twins, times, sizes, tables. It formats and never prints.

Colour only adds to words: `NO_COLOR` beats `FORCE_COLOR` beats what the stream is. Times are relative on a terminal and
RFC 3339 when piped; ids are short on a terminal and whole when piped.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from reef.text import one_line, safe, short_id, width

_STYLES = {"failed": "31", "needs": "33", "good": "32", "hint": "36", "dim": "2", "strong": "1"}
_TWINS = {
    "·": "-",
    "✓": "ok",
    "✗": "x",
    "●": "*",
    "▲": "!",
    "▸": ">",
    "…": "...",
    "–": "-",
    "→": "->",
    "✂": "cut",
}
_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_LABEL = re.compile(r" *\S+(?: \S+)? {2,}| +")
_NARROWEST = 8
_LAST = 16
_UNITS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Look:
    """What one stream can show."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _stream(self) -> TextIO:
        stream: TextIO = getattr(sys, self._name)
        return stream

    @property
    def terminal(self) -> bool:
        """Whether a person looks at this stream."""
        return self._stream.isatty()

    @property
    def colour(self) -> bool:
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return os.environ["FORCE_COLOR"] != "0"
        return self.terminal and os.environ.get("TERM", "") not in ("dumb", "")

    @property
    def ascii(self) -> bool:
        """Whether symbols are replaced by their ASCII twins."""
        if os.environ.get("TERM") == "dumb":
            return True
        return "utf" not in (self._stream.encoding or "").lower()

    @property
    def columns(self) -> int:
        """Columns of the terminal; for a pipe as good as unlimited."""
        return shutil.get_terminal_size().columns if self.terminal else 4000

    def paint(self, text: str, style: str) -> str:
        """`text` in one of the styles failed, needs, good, hint, dim, strong."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text

    def symbol(self, sign: str) -> str:
        """A symbol, or its ASCII twin."""
        return _TWINS.get(sign, sign) if self.ascii else sign

    def joined(self, *parts: str | None) -> str:
        """Facts of one line, with a dot between; empty ones are left out."""
        return f" {self.symbol('·')} ".join(part for part in parts if part)

    def id(self, hex_id: str | None) -> str:
        """An id: short for a person, whole for a program."""
        if not hex_id:
            return self.symbol("–")
        return short_id(hex_id).replace("…", self.symbol("…")) if self.terminal else hex_id

    def when(self, at: str | None) -> str:
        """A stored time: `12 min ago` for a person, RFC 3339 UTC for a program."""
        if not at:
            return self.symbol("–")
        return ago(at) if self.terminal else at

    def line(self, text: str | None, columns: int = 0) -> str:
        """Foreign text as one safe line; cut to `columns` for a person, whole for a program."""
        if not text:
            return ""
        return one_line(text, columns) if columns and self.terminal else one_line(text, 2000)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
        """Lines of an aligned table; `right` are flush right.

        For a person, the last column takes what is left of the line, and wide columns are cut where a narrow terminal
        leaves it too little. A program gets every cell whole.
        """
        if not rows:
            return []
        widths = [max(_shown(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
        room = self.columns - 2 * (len(widths) - 1)
        while self.terminal and room - sum(widths[:-1]) < min(_LAST, widths[-1]) and max(widths[:-1]) > _NARROWEST:
            widths[widths.index(max(widths[:-1]))] -= 1
        widths[-1] = max(_NARROWEST, room - sum(widths[:-1]))
        lines = []
        for number, row in enumerate([heads, *rows]):
            cells = []
            for at, cell in enumerate(row):
                cut = self._cut(cell, widths[at])
                pad = " " * (widths[at] - _shown(cut)) if at < len(row) - 1 else ""
                cells.append(pad + cut if at in right else cut + pad)
            text = "  ".join(cells).rstrip()
            lines.append(self.paint(text, "dim") if number == 0 else text)
        return lines

    def folded(self, text: str) -> list[str]:
        """`text`, one line, as lines that fit: broken between words for a person, below the first word's column."""
        if _shown(text) <= self.columns:
            return [text]
        label = _LABEL.match(text)
        blanks = text[: len(text) - len(text.lstrip(" "))]
        narrow = label is not None and label.end() < self.columns // 2
        first = label.group() if label is not None and narrow else blanks
        indent = " " * (_shown(first) if narrow else len(blanks) + 4 * bool(blanks))
        lines, now = [], first
        for word in text[len(first) :].split(" "):
            joined = now + word if now in (first, indent) else f"{now} {word}"
            if _shown(joined) > self.columns and now.strip():
                lines.append(now.rstrip())
                now = indent + word
            else:
                now = joined
        return [*lines, now.rstrip()]

    def _cut(self, cell: str, columns: int) -> str:
        if not self.terminal or _shown(cell) <= columns:
            return cell
        paint = _PAINT.match(cell)
        cut = one_line(_PAINT.sub("", cell), columns).replace("…", self.symbol("…")[:1])
        return f"{paint.group()}{cut}\x1b[0m" if paint else cut


def _shown(text: str) -> int:
    """Columns that `text` takes on a terminal; colour takes none."""
    return width(_PAINT.sub("", text)) if "\x1b" in text else width(text)


OUT = Look("stdout")
ERR = Look("stderr")


def parse_time(at: str) -> datetime | None:
    """A stored RFC 3339 time; None when it is none."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def ago(at: str) -> str:
    """`12 s ago`, `3 h ago`, `now`; the text itself when it is no time."""
    then = parse_time(at)
    if then is None:
        return safe(at)
    seconds = (datetime.now(UTC) - then).total_seconds()
    if seconds < 1:
        return "now"
    return f"{int(seconds)} s ago" if seconds < 10 else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """A duration in its largest unit: `14 ms`, `3.2 s`, `41 s`, `2 h`."""
    if seconds < 10:
        return f"{max(seconds, 0) * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "0 s"


def size(count: int | float | None) -> str:
    """Bytes in a unit that is easy to read: `61 MB` (powers of 1000)."""
    amount = float(count or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def counted(number: int, thing: str) -> str:
    """A number of things: `1 report`, `1,200 reports`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def count(number: int | None) -> str:
    """A whole number with thousands marked."""
    return f"{number or 0:,}"
