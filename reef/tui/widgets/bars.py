"""The lines around a place: places and state on top, a title line, rules, and the line of keys at the bottom."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip

from reef.tui import cells
from reef.tui.lines import Span
from reef.tui.widgets.painted import Painted


def columns_of(spans: Sequence[Span]) -> int:
    """Columns that spans take."""
    return sum(cells.width(text) for text, _ in spans)


class Rule(Painted):
    """A line across the screen."""

    DEFAULT_CSS = "Rule { height: 1; width: 100%; }"

    def render_line(self, y: int) -> Strip:
        return self.strip_of([("─" * self.size.width, "rule")], self.size.width)


class Bar(Painted):
    """One line with spans at the left and spans at the right; the right ones are dropped first when it is narrow."""

    DEFAULT_CSS = "Bar { height: 1; width: 1fr; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.left: Sequence[Span] = ()
        self.right: Sequence[Sequence[Span]] = ()
        """Several forms of the right side, the longest first: the first that fits is painted."""

    def show(self, left: Sequence[Span], right: Sequence[Sequence[Span]] = ()) -> None:
        """Show these spans."""
        if (left, right) != (self.left, self.right):
            self.left, self.right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        used = columns_of(self.left)
        for form in self.right:
            size = columns_of(form)
            if used + 2 + size <= columns:
                blank = " " * (columns - used - size)
                return self.strip_of([*self.left, (blank, ""), *form], columns)
        return self.strip_of(self.left, columns)


class Header(Bar):
    """The places, by number, and what is served."""

    DEFAULT_CSS = "Header { height: 1; width: 100%; }"

    class Chosen(Message):
        """A place was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, places: Sequence[tuple[int, str]], here: int) -> None:
        super().__init__(id="header")
        self.places = places
        self.here = here

    def place_spans(self, names: bool = True, tight: bool = False) -> list[Span]:
        """The left side: `reef  1 Now  2 Traces …`, the present place marked; without `names` only the numbers."""
        lead = " " if tight else "  "
        spans: list[Span] = [(" reef ", "strong")]
        for number, name in self.places:
            if number == self.here:
                spans += [(" ", ""), (f" {number} {name} ", "place")]
            else:
                spans += [
                    (f"{lead}{number}", "key"),
                    (f" {name}" if names else "", "dim"),
                    ("" if not names else " ", ""),
                ]
        return spans

    def render_line(self, y: int) -> Strip:
        self.left = self.place_spans()
        if self.right and columns_of(self.left) + 2 + columns_of(self.right[0]) > self.size.width:
            self.left = self.place_spans(tight=True)
        if self.right and columns_of(self.left) + 2 + columns_of(self.right[-1]) > self.size.width:
            self.left = self.place_spans(names=False)
        return super().render_line(y)

    def on_click(self, event: events.Click) -> None:
        at = 0
        for text, _ in self.left:
            at += cells.width(text)
            if event.x < at:
                digits = text.strip()[:1]
                if digits.isdigit():
                    self.post_message(self.Chosen(int(digits)))
                return


class KeyLine(Bar):
    """The keys of the place: as many as fit, the last ones always."""

    DEFAULT_CSS = "KeyLine { height: 1; width: 100%; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys: Sequence[tuple[str, str]] = ()
        self.last: Sequence[tuple[str, str]] = ()

    def show_keys(self, keys: Sequence[tuple[str, str]], last: Sequence[tuple[str, str]]) -> None:
        """Show key and word pairs; `last` ones are kept when there is no room for all."""
        self.keys, self.last = keys, last
        self.refresh()

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        own = sum(columns_of(_key_spans(key, label)) for key, label in self.keys)
        last = [_key_spans(key, label) for key, label in self.last]
        if 1 + own + sum(columns_of(spans) for spans in last) > columns:
            last = [_key_spans(key, label.partition(" (")[0]) for key, label in self.last]
        room = columns - 1 - sum(columns_of(spans) for spans in last)
        spans: list[Span] = [(" ", "")]
        for key, label in self.keys:
            one = _key_spans(key, label)
            room -= columns_of(one)
            if room < 0:
                break
            spans += one
        for one in last:
            spans += one
        return self.strip_of(spans, columns)


def _key_spans(key: str, label: str) -> list[Span]:
    return [(key, "key"), (f" {label}   ", "dim")]


class Notice(Painted):
    """Covers a screen that is too small to be of use, and says so."""

    DEFAULT_CSS = """
    Notice { layer: notice; dock: top; width: 100%; height: 100%; display: none; background: $background; }
    """

    def render_line(self, y: int) -> Strip:
        columns, height = self.size
        if y != height // 2:
            return self.strip_of((), columns)
        size = self.app.size
        text = f"reef needs 60x15, this is {size.width}x{size.height}"
        return self.strip_of([(cells.cut(text, columns), "accent")], columns)
