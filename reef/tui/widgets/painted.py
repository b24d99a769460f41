"""The base of reef's own widgets: roles as styles, exact strips of cells, ASCII twins on request.

These widgets paint line by line, so nothing they show can be taken for markup and nothing off screen costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from reef.tui import cells
from reef.tui.lines import Span
from reef.tui.theme import drawn, role_style


class Painted(Widget):
    """A widget that paints spans."""

    ALLOW_SELECT = False

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._styles: dict[tuple[str, bool, bool], Style] = {}

    @property
    def ascii_only(self) -> bool:
        """Whether symbols are painted as ASCII."""
        return bool(getattr(self.app, "ascii_only", False))

    def notify_style_update(self) -> None:
        """The theme or the state changed: look styles up again."""
        self._styles.clear()
        super().notify_style_update()

    def style_of(self, role: str, under_cursor: bool = False) -> Style:
        """The style of a role on this widget's background."""
        key = (role, under_cursor, self.has_focus)
        found = self._styles.get(key)
        if found is None:
            variables = self.app.theme_variables
            found = self.rich_style
            if under_cursor:
                found += role_style("cursor" if self.has_focus else "cursor-still", variables)
            if role:
                found += role_style(role, variables)
            self._styles[key] = found
        return found

    def strip_of(self, spans: Iterable[Span], columns: int, under_cursor: bool = False) -> Strip:
        """Spans as a strip of exactly `columns` columns."""
        plain = self.ascii_only
        segments: list[Segment] = []
        left = columns
        for text, role in spans:
            if left <= 0:
                break
            size = cells.width(text)
            if size > left:
                text = cells.cut(text, left)
                size = cells.width(text)
            if text:
                segments.append(Segment(drawn(text, plain), self.style_of(role, under_cursor)))
                left -= size
        if left > 0:
            segments.append(Segment(" " * left, self.style_of("", under_cursor)))
        return Strip(segments, max(columns, 0))
