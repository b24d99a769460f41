"""Text that the person types or pastes: control characters of a paste are made visible before they are painted."""

from __future__ import annotations

from textual import events
from textual.widgets import Input, TextArea

from reef.tui import cells


class PlainInput(Input):
    """One line of text."""

    DEFAULT_CSS = """
    PlainInput { border: none; height: 1; padding: 0; background: $background; }
    PlainInput:focus { border: none; background-tint: $foreground 0%; }
    """

    def _on_paste(self, event: events.Paste) -> None:
        event.text = cells.shown(event.text)


class PlainArea(TextArea):
    """Several lines of text."""

    DEFAULT_CSS = """
    PlainArea { border: none; padding: 0 1; }
    PlainArea:focus { border: none; }
    """

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = cells.shown(event.text)
