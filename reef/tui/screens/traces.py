"""Place 2: the recorded calls at the left, the conversation of the one under the cursor at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from reef.tui import actions, figures
from reef.tui.lines import Block, Column, Row, Span
from reef.tui.screens.place import Place
from reef.tui.screens.rating import Rating
from reef.tui.source import Page
from reef.tui.views import conversation, records
from reef.tui.widgets.rowlist import Present
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]
OPEN_S = 1.0
VIEWS = ("conversation", "request", "response")
MOST_BYTES = 8_000_000
"""Bodies longer than this are not fetched by moving the cursor; `r` fetches them."""


class Traces(Rating, Place):
    """Recorded calls, live."""

    place: ClassVar[str] = "traces"
    number: ClassVar[int] = 2
    columns: ClassVar[Sequence[Column]] = records.COLUMNS
    BINDINGS = actions.bindings(actions.offered("traces"))
    DEFAULT_CSS = "Traces.-wide #list { width: 58%; }"

    def __init__(self) -> None:
        super().__init__()
        self.view = "conversation"
        self.whole_total = 0
        self.go_to: str | None = None
        """Receipt to put the cursor on when its row is there."""

    def on_mount(self) -> None:
        self.set_interval(OPEN_S, self._follow_open)

    def _follow_open(self) -> None:
        """The answer that is being given is stored piece by piece, without an event for each."""
        row = self.current
        if row is not None and row.data.get("state") == "open" and self.reef.place is self and not self.paused:
            self._open_current()

    def present(self) -> Present:
        return records.present

    def noun(self) -> str:
        return "call"

    def whole(self) -> int:
        return self.whole_total

    def concerns(self, event: Json) -> bool:
        return str(event.get("kind")).startswith(("record", "report"))

    def empty_lines(self) -> Sequence[Sequence[Span]]:
        return (
            [("   no calls yet", "dim"), (" · ", "faint"), ("reef-pi", "code"), (" or point a client at", "dim")],
            [(f"   {self.reef.address}/v1", "code")],
        )

    def fetch(self, wanted: Wanted | None = None) -> None:
        asked = wanted or self.rows.window.news()
        scenario, text = self.reef.read_scenario, self.text

        def received(page: Page) -> None:
            if (scenario, text) != (self.reef.read_scenario, self.text):
                return
            if not text:
                self.whole_total = page.total
            self.rows.receive(asked, [records.row(record) for record in page.rows], page.total, page.more)
            self.filled()
            if self.go_to is not None and self.rows.to_key(self.go_to):
                self.go_to = None

        self.background(asked.kind, lambda: self.reef.source.records(scenario, asked, text), received)

    def open_page(self, row: Row) -> None:
        view, record = self.view, row.data
        name = f"{row.key} {view}"

        def work() -> list[Block]:
            if view != "conversation":
                return conversation.raw(view, self.reef.source.body(row.key, view))
            whole = record | self.reef.source.record(row.key)
            earlier, whole["earlier_note"] = conversation.earlier(whole, self.reef.source.record)
            return conversation.blocks(whole, *_bodies(whole), [_bodies(one) for one in earlier])

        def made(blocks: list[Block]) -> None:
            if self._page_of == row.key and self.view == view:
                self.page.show(name, blocks)

        self.background("page", work, made)

    def whole_of(self, row: Row) -> Json:
        return row.data | self.reef.source.record(row.key)

    def title_right(self) -> list[Span]:
        right = super().title_right()
        if self.view != "conversation":
            return [(f"raw {self.view} · {self.reef.key('raw')} goes on   ", "accent"), *right]
        return right

    def do_raw(self) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self.refresh_bars()
        if self.current is not None:
            self._open_current()

    def do_go_version(self) -> None:
        number = self.current.data.get("version") if self.current else None
        if number is None:
            self.reef.say("no version answered this call", warn=True)
        else:
            self.reef.anywhere.show_version(str(self.current.data.get("scenario")) if self.current else "", int(number))

    def do_export(self) -> None:
        row = self.current
        if row is None:
            return
        if self.view == "conversation":
            super().do_export()
            return
        part = self.view
        self.act(
            "export",
            lambda: self.reef.source.body(row.key, part),
            lambda body: self.reef.export(f"{part}-{row.key[:12]}.json", body.decode("utf-8", "replace")),
        )

    def show_receipt(self, receipt: str) -> None:
        """Put the cursor on a call once its row is there."""
        if not self.rows.to_key(receipt):
            self.go_to = receipt


def _bodies(record: Json) -> tuple[bytes | None, bytes | None]:
    return _body(record, "request"), _body(record, "response")


def _body(record: Json, part: str) -> bytes | None:
    """The stored text of a body, as the daemon sent it with the record; a body that is too long is said to be so."""
    text = record.get(f"{part}_text")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    size = record.get(f"{part}_bytes") or 0
    if size > MOST_BYTES:
        return f"({figures.size(size)}: r fetches it)".encode()
    return None
