"""The rows that a list holds: one stretch of a long, growing sequence, never the whole of it.

Rows stand newest first. The window knows whether it reaches the newest and the oldest row, keeps the cursor on the same
row when rows arrive, and forgets rows that are far from the viewport. It asks for pages, it does not fetch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reef.tui.lines import Row

PAGE = 200
KEPT = 800
MARGIN = 60

Kind = Literal["newest", "oldest", "older", "newer", "visible"]


@dataclass(frozen=True)
class Wanted:
    """A page the window wants: `older` than or `newer` than the row of order `edge`, at most `limit` rows."""

    kind: Kind
    edge: int = 0
    limit: int = PAGE
    jump: bool = False
    """Whether the cursor goes to the first row of the page."""


class Window:
    """Rows around the viewport, the cursor, and the first row of the viewport."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.total = 0
        self.reaches_newest = True
        self.reaches_oldest = True
        self.cursor = 0
        self.top = 0
        self.height = 1
        self.above = 0
        """Rows newer than the first one held, as far as is known."""
        self.loaded = False

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def replace(self, rows: Sequence[Row], total: int, newest: bool, oldest: bool) -> None:
        """Hold `rows` instead; the cursor stays on its row if that is among them."""
        held = self.current.key if self.current else None
        offset = self.cursor - self.top
        self.rows = list(rows)
        self.total, self.reaches_newest, self.reaches_oldest = total, newest, oldest
        self.above = 0 if newest else max(total - len(self.rows), 0) if oldest else self.above
        self.loaded = True
        found = next((place for place, row in enumerate(self.rows) if row.key == held), None)
        if found is None:
            self.cursor, self.top = (0, 0) if newest or not oldest else (len(self.rows) - 1, len(self.rows))
        elif self.top > 0:
            self.cursor, self.top = found, found - offset
        else:
            self.cursor = found
        self.settle()

    def receive(self, wanted: Wanted, rows: Sequence[Row], total: int, more: bool) -> None:
        """Take the page that answers `wanted`; `more` says whether rows lie beyond it."""
        if wanted.kind == "newest":
            self._newest(wanted, rows, total, more)
        elif wanted.kind == "oldest":
            self.replace(rows, total, newest=not more, oldest=True)
            self.to_bottom()
        elif wanted.kind == "older" and self.rows and wanted.edge == self.rows[-1].order:
            self.rows += [row for row in rows if row.order < wanted.edge]
            self.total, self.reaches_oldest = total, not more
            self._trim_front()
        elif wanted.kind == "newer" and self.rows and wanted.edge == self.rows[0].order:
            self._prepend([row for row in rows if row.order > wanted.edge])
            self.total, self.reaches_newest = total, not more
            if not more:
                self.above = 0
            self._trim_back()
        elif wanted.kind == "visible":
            self._refresh(rows)
            self._grow(total)
        self.settle()

    def _grow(self, total: int) -> None:
        """Rows arrived that are not held."""
        if total > self.total:
            self.above += total - self.total
            self.reaches_newest = False
        self.total = total

    def _newest(self, wanted: Wanted, rows: Sequence[Row], total: int, more: bool) -> None:
        fresh = [row for row in rows if not self.rows or row.order > self.rows[0].order]
        overlaps = len(fresh) < len(rows)
        if wanted.jump or not self.loaded or not self.rows or not self.reaches_newest or not rows:
            self.replace(rows, total, newest=True, oldest=not more)
            if wanted.jump:
                self.cursor = 0
        elif not overlaps and more and self.cursor > 0:
            # Too much arrived at once to join it on without losing the row under the cursor.
            self._grow(max(total, self.total + len(fresh)))
        elif not overlaps and more:
            self.replace(rows, total, newest=True, oldest=False)
        else:
            self._refresh(rows)
            self._prepend(fresh)
            self.total = total
            self._trim_back()

    def _prepend(self, fresh: list[Row]) -> None:
        if not fresh:
            return
        at_top = self.top == 0
        self.rows[:0] = fresh
        self.cursor += len(fresh)
        self.above = max(self.above - len(fresh), 0)
        # A person who looks at the newest rows sees new ones come in, until the cursor would leave the screen.
        if not at_top or self.cursor >= self.height:
            self.top += len(fresh)

    def _refresh(self, rows: Sequence[Row]) -> None:
        fresh = {row.key: row for row in rows}
        self.rows = [fresh.get(row.key, row) for row in self.rows]

    def _trim_front(self) -> None:
        extra = min(len(self.rows) - KEPT, self.top - MARGIN, self.cursor - MARGIN)
        if extra > 0:
            del self.rows[:extra]
            self.cursor, self.top = self.cursor - extra, self.top - extra
            self.above += extra
            self.reaches_newest = False

    def _trim_back(self) -> None:
        last = max(self.top + self.height, self.cursor) + MARGIN
        if len(self.rows) > KEPT and last < len(self.rows):
            del self.rows[max(last, KEPT) :]
            self.reaches_oldest = False

    def settle(self) -> None:
        """Put cursor and viewport where they can be."""
        last = len(self.rows) - 1
        self.cursor = max(0, min(self.cursor, last))
        self.top = max(0, min(self.top, len(self.rows) - self.height))
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + self.height:
            self.top = self.cursor - self.height + 1

    def move(self, rows: int) -> None:
        """Move the cursor; the viewport follows."""
        self.cursor += rows
        self.settle()

    def scroll(self, rows: int) -> None:
        """Move the viewport; the cursor stays in it."""
        self.top = max(0, min(self.top + rows, len(self.rows) - self.height))
        self.cursor = max(self.top, min(self.cursor, self.top + self.height - 1))
        self.settle()

    def to_bottom(self) -> None:
        """To the last row that is held."""
        self.cursor = len(self.rows) - 1
        self.settle()

    def to_key(self, key: str) -> bool:
        """Put the cursor on a row; False when it is not held."""
        found = next((place for place, row in enumerate(self.rows) if row.key == key), None)
        if found is not None:
            self.cursor = found
            self.settle()
        return found is not None

    def wanted(self) -> Wanted | None:
        """The page to fetch next because the viewport came near an end of the window."""
        if not self.rows:
            return None
        if not self.reaches_oldest and self.top + self.height + MARGIN > len(self.rows):
            return Wanted("older", self.rows[-1].order)
        if not self.reaches_newest and self.top < MARGIN:
            return Wanted("newer", self.rows[0].order)
        return None

    def news(self) -> Wanted:
        """The page that shows what changed: the newest rows while they are in view, else the rows in view."""
        if self.reaches_newest and self.top < MARGIN:
            return Wanted("newest", 0, PAGE)
        newest = self.rows[self.top].order if self.rows else 0
        return Wanted("visible", newest + 1, self.height)
