"""The dialogs: confirm with what will change, write some text, choose one of many, read a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input

from reef.tui import cells
from reef.tui.lines import Block, Cell, Column, Line, Row, Span
from reef.tui.screens.base import Dialog, Result
from reef.tui.widgets.bars import Bar
from reef.tui.widgets.document import Document
from reef.tui.widgets.inputs import PlainArea, PlainInput
from reef.tui.widgets.rowlist import RowList

MOVES: list[Binding | tuple[str, str] | tuple[str, str, str]] = [
    Binding("down,ctrl+n", "move(1)", show=False),
    Binding("up,ctrl+p", "move(-1)", show=False),
    Binding("pagedown", "turn(1)", show=False),
    Binding("pageup", "turn(-1)", show=False),
]


class Paged(Dialog[Result]):
    """A dialog around one page that scrolls."""

    BINDINGS = [*MOVES, Binding("j", "move(1)", show=False), Binding("k", "move(-1)", show=False)]
    page_id = "page"

    def __init__(self, heading: Sequence[Span], blocks: Sequence[Block]) -> None:
        super().__init__()
        self.heading = heading
        self.blocks = blocks

    def content(self) -> ComposeResult:
        yield Document(id=self.page_id)

    def on_mount(self) -> None:
        page = self.query_one(Document)
        page.show(self.page_id, self.blocks)
        page.focus()

    def action_move(self, lines: int) -> None:
        self.query_one(Document).move(lines)

    def action_turn(self, direction: int) -> None:
        self.query_one(Document).turn(direction)


class Reading(Paged[None]):
    """A page to read: help, or an error with all of its text."""

    BINDINGS = [
        Binding("space", "turn(1)", show=False),
        Binding("enter,q,question_mark,f1", "leave", show=False),
        Binding("y", "copy", show=False),
    ]
    DEFAULT_CSS = "Reading > .sheet { height: 90%; } Reading Document { background: $panel; }"
    keys = (("j k", "move"), ("y", "copy"), ("esc", "back"))
    page_id = "reading"

    def __init__(self, heading: Sequence[Span], blocks: Sequence[Block], copied: str) -> None:
        super().__init__(heading, blocks)
        self.copied = copied

    def action_copy(self) -> None:
        self.reef.copy(self.copied, "page.txt", "the page")


class Confirm(Paged[bool]):
    """A decision: what will change is shown, `y` or enter does it, everything else does not."""

    BINDINGS = [Binding("enter,y", "yes", show=False), Binding("n,q", "leave", show=False)]
    DEFAULT_CSS = "Confirm Document { background: $panel; height: auto; max-height: 24; }"
    page_id = "change"

    def __init__(self, heading: Sequence[Span], blocks: Sequence[Block], yes: str) -> None:
        super().__init__(heading, blocks)
        self.keys = (("enter", yes), ("j k", "read on"), ("esc", "no"))

    def on_resize(self) -> None:
        page = self.query_one(Document)
        lines = page.lines_at(max(self.size.width * 9 // 10 - 6, 1))
        page.styles.height = max(1, min(lines, self.size.height * 9 // 10 - 5))

    def action_yes(self) -> None:
        self.dismiss(True)


class Writing(Dialog[str]):
    """A text of the person: an ask, or a note on a call."""

    BINDINGS = [Binding("ctrl+s,ctrl+enter,f2", "send", show=False)]
    DEFAULT_CSS = """
    Writing PlainArea { height: 8; background: $background; }
    Writing #about { margin-bottom: 1; }
    Writing.-too-low PlainArea { height: 1; }
    """

    def __init__(self, heading: Sequence[Span], about: str, placeholder: str, send: str, text: str = "") -> None:
        super().__init__()
        self.heading = heading
        self.about = about
        self.placeholder = placeholder
        self.text = text
        self.keys = (("ctrl+s", send), ("esc", "leave"))

    def content(self) -> ComposeResult:
        yield Bar(id="about")
        yield PlainArea(self.text, soft_wrap=True, tab_behavior="focus", compact=True, show_line_numbers=False)

    def on_mount(self) -> None:
        self.query_one("#about", Bar).show([(cells.line(self.about, 200), "dim")])
        area = self.query_one(PlainArea)
        # A plain content object: a placeholder given as text would be read as markup.
        area.placeholder = self.reef.plain(self.placeholder)
        area.focus()

    def action_send(self) -> None:
        text = self.query_one(PlainArea).text.strip()
        if not text:
            self.reef.say("write a sentence first; esc leaves", warn=True)
            return
        self.dismiss(text)


class Choosing(Dialog[str]):
    """One of many: typing narrows the list, enter takes the row under the cursor. The answer is the row's key."""

    BINDINGS = MOVES
    DEFAULT_CSS = """
    Choosing > .sheet { height: 80%; }
    Choosing RowList { background: $panel; }
    Choosing PlainInput { background: $panel; margin: 0 0 1 1; }
    """
    keys = (("enter", "take"), ("↑ ↓", "move"), ("esc", "leave"))

    def __init__(self, heading: Sequence[Span], options: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        super().__init__()
        self.heading = heading
        self.options = options

    def content(self) -> ComposeResult:
        yield PlainInput(placeholder=self.drawn("type to narrow …"), select_on_focus=False)
        columns = [Column("name", "", 0)]
        if any(shown.get("more") for _, shown in self.options):
            columns.append(Column("more", "", 0, least=56))
        if any(shown.get("key") for _, shown in self.options):
            columns.append(Column("key", "", 10, right=True, least=40))
        yield RowList(columns, _choice_cells, id="choices", titles=False)

    def on_mount(self) -> None:
        self.query_one(RowList).can_focus = False
        self.query_one(Input).focus()
        self._narrow("")

    @on(Input.Changed)
    def narrowed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    @on(Input.Submitted)
    def taken(self) -> None:
        self.action_take()

    @on(RowList.Opened)
    def clicked(self) -> None:
        self.action_take()

    def _narrow(self, text: str) -> None:
        words = text.lower().split()
        rows = [
            Row(key, -number, dict(shown))
            for number, (key, shown) in enumerate(self.options)
            if all(word in " ".join(shown.values()).lower() for word in words)
        ]
        choices = self.query_one(RowList)
        choices.empty = ([("   nothing is called that", "dim")],)
        choices.show(rows)
        choices.to_top()

    def action_take(self) -> None:
        row = self.query_one(RowList).current
        if row is not None:
            self.dismiss(row.key)

    def action_move(self, rows: int) -> None:
        self.query_one(RowList).move(rows)

    def action_turn(self, direction: int) -> None:
        self.query_one(RowList).page(direction)


def _choice_cells(row: Row) -> dict[str, Cell]:
    return {
        "name": Cell(cells.line(row.data.get("name", ""), 80)),
        "more": Cell(cells.line(row.data.get("more", ""), 120), "dim"),
        "key": Cell(cells.line(row.data.get("key", ""), 20), "key"),
    }


def error_blocks(message: str, hint: str | None) -> list[Block]:
    """An error as a page: the sentence, and the command that helps."""
    lines = [Line.of((cells.line(message, 1000), "failed"))]
    if hint:
        lines += [Line(), Line.of(("hint: ", "dim"), cells.line(hint, 400))]
    return [Block("error", None, lines)]
