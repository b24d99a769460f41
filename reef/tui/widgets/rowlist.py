"""A list of rows in columns: virtual, followed live, moved with the keyboard or the mouse.

It paints the rows that are in view and holds a window of rows around them; it asks for pages with `RowList.Wants`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip

from reef.tui import cells
from reef.tui.lines import Cell, Column, Row, Span
from reef.tui.widgets.painted import Painted
from reef.tui.widgets.window import Wanted, Window

Present = Callable[[Row], Mapping[str, Cell]]
GAP = 2
MARK = 3
"""Columns before the first one: a blank, the cursor mark, a blank."""


class RowList(Painted, can_focus=True):
    """Rows in columns, one of them under the cursor."""

    DEFAULT_CSS = "RowList { height: 1fr; width: 1fr; }"

    class Wants(Message):
        """The list needs a page of rows."""

        def __init__(self, rows: RowList, wanted: Wanted) -> None:
            super().__init__()
            self.rows = rows
            self.wanted = wanted

        @property
        def control(self) -> RowList:
            return self.rows

    class Moved(Message):
        """Another row is under the cursor, or its content changed."""

        def __init__(self, rows: RowList, row: Row | None) -> None:
            super().__init__()
            self.rows = rows
            self.row = row

        @property
        def control(self) -> RowList:
            return self.rows

    class Opened(Message):
        """The row under the cursor was clicked."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(self, columns: Sequence[Column], present: Present, id: str | None = None, titles: bool = True) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.present = present
        self.titles = titles
        self.window = Window()
        self.empty: Sequence[Sequence[Span]] = ()
        """Lines painted while there is no row: a sentence and the command that fills the list."""
        self._asked: Wanted | None = None
        self._told: Row | None = None

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.window.current

    # content

    def show(self, rows: Sequence[Row]) -> None:
        """Hold exactly `rows`: for lists that are fetched whole."""
        self.window.replace(rows, len(rows), newest=True, oldest=True)
        self._changed()

    def receive(self, wanted: Wanted, rows: Sequence[Row], total: int, more: bool) -> None:
        """Take a page that was asked for."""
        self._asked = None
        self.window.receive(wanted, rows, total, more)
        self._changed()

    def missed(self) -> None:
        """The page that was asked for did not come; it may be asked for again."""
        self._asked = None

    def forget(self) -> None:
        """Start anew, for other content."""
        height = self.window.height
        self.window = Window()
        self.window.height = height
        self._asked = None
        self._changed()

    # moves

    def move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.window.move(rows)
        self._changed()

    def page(self, direction: int) -> None:
        """Move by a page."""
        self.move(direction * max(self.window.height - 1, 1))

    def to_top(self) -> None:
        """To the newest row, which may have to be fetched."""
        if self.window.reaches_newest:
            self.window.cursor = self.window.top = 0
            self._changed()
        else:
            self._ask(Wanted("newest", jump=True))

    def to_bottom(self) -> None:
        """To the oldest row, which may have to be fetched."""
        if self.window.reaches_oldest:
            self.window.to_bottom()
            self._changed()
        else:
            self._ask(Wanted("oldest"))

    def to_key(self, key: str) -> bool:
        """To the row with that key; False when it is not held."""
        found = self.window.to_key(key)
        self._changed()
        return found

    def _ask(self, wanted: Wanted) -> None:
        self._asked = wanted
        self.post_message(self.Wants(self, wanted))

    def _changed(self) -> None:
        self.refresh()
        if self._asked is None and (wanted := self.window.wanted()) is not None:
            self._ask(wanted)
        if self.current != self._told:
            self._told = self.current
            self.post_message(self.Moved(self, self.current))

    def on_resize(self, event: events.Resize) -> None:
        self.window.height = max(1, event.size.height - (1 if self.titles else 0))
        self.window.settle()
        self._changed()

    # mouse

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.window.scroll(3)
        self._changed()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.window.scroll(-3)
        self._changed()

    def on_click(self, event: events.Click) -> None:
        place = self.window.top + event.y - (1 if self.titles else 0)
        if event.y < (1 if self.titles else 0) or place >= len(self.window.rows):
            return
        if place == self.window.cursor and event.chain > 1:
            self.post_message(self.Opened(self))
        self.move(place - self.window.cursor)

    # painting

    def _layout(self, columns: int) -> list[tuple[Column, int]]:
        """The columns that are shown and how wide each is; those that share get what is left."""
        room = columns - MARK - 1
        shown = [c for c in self.columns if c.least <= columns and (not c.most or columns <= c.most)]
        fixed = sum(column.width for column in shown) + GAP * (len(shown) - 1)
        shares = sum(1 for column in shown if not column.width)
        spare = max(room - fixed, 0)
        layout = []
        for column in shown:
            width = column.width
            if not width:
                width = spare // shares
                spare, shares = spare - width, shares - 1
            layout.append((column, width))
        return layout

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        if columns <= 0:
            return Strip([])
        if not self.window.rows:
            lines = self.empty if self.window.loaded else ((("   …", "faint"),),)
            start = 1 if self.titles else 0
            spans = lines[y - start] if start <= y < start + len(lines) else ()
            return self.strip_of(spans, columns)
        if self.titles:
            if y == 0:
                return self._titles(columns)
            y -= 1
        place = self.window.top + y
        if place >= len(self.window.rows):
            return self.strip_of((), columns)
        return self._row(self.window.rows[place], place == self.window.cursor, columns, self._thumb(y))

    def _titles(self, columns: int) -> Strip:
        spans: list[Span] = [(" " * MARK, "")]
        for place, (column, width) in enumerate(self._layout(columns)):
            spans += [(" " * GAP if place else "", ""), (cells.fit(column.title, width, column.right), "heading")]
        return self.strip_of(spans, columns)

    def _row(self, row: Row, under_cursor: bool, columns: int, thumb: str) -> Strip:
        found = self.present(row)
        spans: list[Span] = [(" ▸ " if under_cursor else " " * MARK, "key")]
        for place, (column, width) in enumerate(self._layout(columns)):
            cell = found.get(column.name, Cell())
            spans.append((" " * GAP if place else "", ""))
            if cell.lead is not None:
                lead = cells.cut(cell.lead[0], width)
                spans.append((lead, cell.lead[1]))
                width -= cells.width(lead)
            spans.append((cells.fit(cell.text, width, column.right), cell.role))
        room = columns - 1
        strip = self.strip_of(spans, room, under_cursor)
        return Strip.join([strip, self.strip_of([(thumb, "rule")], 1, under_cursor)])

    def _thumb(self, y: int) -> str:
        """The scroll mark of a screen line: where the viewport stands in all rows."""
        window = self.window
        total = max(window.total, len(window.rows))
        if total <= window.height:
            return " "
        length = max(1, window.height * window.height // total)
        start = (window.above + window.top) * (window.height - length) // max(total - window.height, 1)
        return "▐" if start <= y < start + length else " "
