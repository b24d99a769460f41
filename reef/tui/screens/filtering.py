"""The filter of a place: typed in its title line, applied a moment after the last key, cleared by esc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.widgets import Input

from reef.tui import cells

if TYPE_CHECKING:
    from reef.tui.screens.base import ReefScreen
    from reef.tui.widgets.rowlist import RowList
    from reef.tui.widgets.window import Wanted

    class _Base(ReefScreen):
        text: str

        @property
        def rows(self) -> RowList: ...

        def fetch(self, wanted: Wanted | None = None) -> None: ...

else:
    _Base = object

FILTER_DELAY_S = 0.15


class Filtering(_Base):
    """Adds `/` to a place that has a field `#filter`, `rows`, `text` and `fetch`."""

    _filter_timer: Timer | None = None

    def do_filter(self) -> None:
        self.add_class("-filtering")
        # Disabled while it is not shown, so that no key can ever land in it unseen.
        field = self.query_one("#filter", Input)
        field.disabled = False
        field.focus()

    def filter_typed(self, event: Input.Changed) -> None:
        """The text changed: filter once the person pauses."""
        event.input.styles.width = max(6, min(cells.width(event.value) + 2, 40))
        if self._filter_timer is not None:
            self._filter_timer.stop()
        self._filter_timer = self.set_timer(FILTER_DELAY_S, lambda: self._filter(event.value))

    def filter_submitted(self, event: Input.Submitted) -> None:
        """Enter: filter now, and give the keys back to the list."""
        self._filter(event.value)
        if not self.text:
            self._close_filter()
        self.rows.focus()

    def clear_filter(self) -> None:
        """Show everything again."""
        self._filter("")
        self._close_filter()

    def _close_filter(self) -> None:
        self.remove_class("-filtering")
        field = self.query_one("#filter", Input)
        field.value = ""
        field.disabled = True
        self.rows.focus()

    def _filter(self, text: str) -> None:
        if text.strip() == self.text:
            return
        self.text = text.strip()
        self.rows.forget()
        self.fetch()
