"""Place 1: what needs the person and what is served at the left, the calls as they come at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from reef.tui import actions
from reef.tui.lines import Column, Span
from reef.tui.screens.place import PLACES, Place
from reef.tui.screens.rating import Rating
from reef.tui.source import Page
from reef.tui.views import now, records
from reef.tui.widgets.bars import Bar, Header, KeyLine, Notice, Rule
from reef.tui.widgets.document import Document
from reef.tui.widgets.inputs import PlainInput
from reef.tui.widgets.rowlist import Present, RowList
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]


class Now(Rating, Place):
    """The first look."""

    place: ClassVar[str] = "now"
    number: ClassVar[int] = 1
    columns: ClassVar[Sequence[Column]] = now.COLUMNS
    BINDINGS = actions.bindings(actions.offered("now"))
    DEFAULT_CSS = """
    Now #page { border-left: none; border-right: solid $reef-rule; width: 46%; }
    Now.-ascii #page { border-right: ascii $reef-rule; }
    Now #list, Now.-wide #list { width: 1fr; }
    Now.-narrow #body, Now.-too-narrow #body { layout: vertical; }
    Now.-narrow #page, Now.-too-narrow #page { display: block; width: 100%; height: 40%; border-right: none; }
    Now.-narrow.-reading #list, Now.-too-narrow.-reading #list { display: block; }
    """

    def compose(self) -> ComposeResult:
        yield Header(PLACES, self.number)
        yield Rule()
        with Horizontal(id="title"):
            yield Bar(id="filter-mark")
            yield PlainInput(id="filter", disabled=True)
            yield Bar(id="title-bar")
        with Horizontal(id="body"):
            yield Document(id="page")
            yield RowList(self.columns, self.present(), id="list")
        yield Rule()
        yield KeyLine(id="keys")
        yield Notice()

    def present(self) -> Present:
        return now.present

    def noun(self) -> str:
        return "call"

    def concerns(self, event: Json) -> bool:
        return True

    def empty_lines(self) -> Sequence[Sequence[Span]]:
        return ([("   no calls yet", "dim"), (" · ", "faint"), ("reef-pi", "code"), (" makes the first", "dim")],)

    def title_left(self) -> list[Span]:
        return []

    def title_right(self) -> list[Span]:
        return [*super().title_left(), ("   ", ""), *super().title_right()]

    def fetch(self, wanted: Wanted | None = None) -> None:
        asked = wanted or self.rows.window.news()

        def received(page: Page) -> None:
            self.rows.receive(asked, [records.row(record) for record in page.rows], page.total, page.more)
            self.filled()

        self.background(asked.kind, lambda: self.reef.source.records(None, asked, None), received)

    def status_changed(self) -> None:
        """The status came in: paint the page anew."""
        self.page.show("now", now.blocks(self.reef.status, self.reef.source.detail, self.reef.source.state == "down"))

    def reload(self) -> None:
        super().reload()
        self.status_changed()

    def filled(self) -> None:
        self.rows.empty = self.empty_lines()
        self.refresh_bars()

    def open_page(self, row: Any) -> None:
        """The page is about reef, not about a row."""

    def do_open(self) -> None:
        if self.in_page:
            self._open_need()
        elif self.current is not None:
            self.reef.anywhere.show_receipt(self.current.key)

    def _open_need(self) -> None:
        block = self.page.current
        needs = [need for need in self.reef.status.get("needs_you") or () if isinstance(need, dict)]
        if block is None or not block.key.startswith("needs-") or not block.key[6:].isdigit():
            self.page.toggle()
            return
        need = needs[int(block.key[6:])] if int(block.key[6:]) < len(needs) else {}
        if isinstance(need.get("version"), int):
            self.reef.anywhere.show_version(str(need.get("scenario")), need["version"])

    def do_other_pane(self) -> None:
        (self.rows if self.in_page else self.page).focus()

    def do_back(self) -> None:
        self.rows.focus()
