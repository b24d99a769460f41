"""What the views make and the widgets paint: spans of text with a role, lines of spans, cells, and foldable blocks.

A role is a name such as `dim` or `failed`; `theme.ROLES` says what it looks like. Text in here is safe to paint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Span = tuple[str, str]
"""Text and its role (`""` is plain text)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line; it is wrapped to the width it is painted in, continuation lines stand at `hang` columns."""

    spans: tuple[Span, ...] = ()
    hang: int = 0

    @classmethod
    def of(cls, *spans: Span | str, hang: int = 0) -> Line:
        """A line of spans; a bare string is plain text."""
        return cls(tuple((span, "") if isinstance(span, str) else span for span in spans), hang)

    @property
    def text(self) -> str:
        """The line without roles."""
        return "".join(text for text, _ in self.spans)


@dataclass(slots=True)
class Block:
    """A part of a page that can be folded: a head line, and lines that are made when they are first shown."""

    key: str
    head: Line | None = None
    body: Sequence[Line] | Callable[[], Sequence[Line]] = ()
    folded: bool | None = None
    """None: cannot be folded."""
    brief: Line | None = None
    """A second head line while it is folded."""
    inside: str | None = None
    """Key of the block that hides this one while it is folded."""
    copy: str = ""
    """What copying at this block gives."""
    ticks: bool = False
    """Whether the body tells relative times: a callable that is called again as time goes by."""
    made: Sequence[Line] | None = field(default=None, repr=False)

    def lines(self) -> Sequence[Line]:
        """The body, made once."""
        if self.made is None:
            self.made = self.body() if callable(self.body) else self.body
        return self.made

    def tick(self) -> bool:
        """Make the lines again if they tell relative times; whether they have changed."""
        if not self.ticks or self.made is None or not callable(self.body):
            return False
        before, self.made = self.made, self.body()
        return list(before) != list(self.made)


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of one column of a row."""

    text: str = ""
    role: str = ""
    lead: Span | None = None
    """Painted before the text in its own role, for example the word for a state."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list."""

    name: str
    title: str
    width: int
    """Columns it takes; 0 shares what is left."""
    right: bool = False
    """Whether numbers stand at its right edge."""
    least: int = 0
    """Width of the whole list from which on the column is shown."""
    most: int = 0
    """Width of the whole list up to which the column is shown; 0: however wide."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a list: a key that stays, its order (newest highest) and the answer it is painted from."""

    key: str
    order: int
    data: dict[str, Any]


def paragraph(text: str, role: str = "", indent: int = 0) -> list[Line]:
    """Lines of `text` (already safe), each indented."""
    lead = " " * indent
    return [Line.of((lead + part, role)) for part in text.split("\n")]
