"""The base of reef's own widgets: roles as styles, exact strips of cells, ASCII twins on request.

These widgets paint line by line, so nothing they show can be taken for markup and nothing off screen costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from reef.tui import cells
from reef.tui.lines import ROLES, Span
from reef.tui.theme import ROLE_CSS, drawn


class Painted(Widget):
    """A widget that paints spans."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"role--{role}" for role in (*ROLES, "cursor")}
    DEFAULT_CSS = "Painted {" + ROLE_CSS + "}"
    ALLOW_SELECT = False

    @property
    def ascii_only(self) -> bool:
        """Whether symbols are painted as ASCII."""
        return bool(getattr(self.app, "ascii_only", False))

    def style_of(self, role: str, under_cursor: bool = False) -> Style:
        """The style of a role on this widget's background."""
        style = self.rich_style
        if under_cursor:
            style += self.get_component_rich_style("role--cursor", partial=True)
        if role:
            style += self.get_component_rich_style(f"role--{role}", partial=True)
        return style

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
