"""Place 3: what was asked for, where each ask stands, and what its step did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from reef.tui import actions, cells
from reef.tui.lines import Block, Column, Line, Row, Span
from reef.tui.screens.dialogs import Confirm
from reef.tui.screens.place import Place
from reef.tui.views import asks
from reef.tui.widgets.rowlist import Present
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]


class Asks(Place):
    """Asks, live."""

    place: ClassVar[str] = "asks"
    number: ClassVar[int] = 3
    columns: ClassVar[Sequence[Column]] = asks.COLUMNS
    BINDINGS = actions.bindings(actions.offered("asks"))
    DEFAULT_CSS = "Asks.-wide #list { width: 58%; }"

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Json] = []

    def present(self) -> Present:
        return asks.present

    def noun(self) -> str:
        return "ask"

    def fits(self, action: str) -> bool:
        row = self.current
        if action == "cancel":
            return row is not None and row.data.get("state") not in asks.SETTLED
        return action != "go_version" or (row is not None and isinstance(row.data.get("version"), int))

    def whole(self) -> int:
        return len(self.found)

    def concerns(self, event: Json) -> bool:
        return str(event.get("kind")).startswith(("ask", "step", "version", "head"))

    def empty_lines(self) -> Sequence[Sequence[Span]]:
        return (
            [
                ("   no asks yet", "dim"),
                (" · ", "faint"),
                ('reef ask "…"', "code"),
                (" or press ", "dim"),
                (self.reef.key("ask"), "key"),
            ],
        )

    def fetch(self, wanted: Wanted | None = None) -> None:
        scenario = self.reef.read_scenario

        def received(found: list[Json]) -> None:
            if scenario == self.reef.read_scenario:
                self.found = found
                self._show()

        self.background("list", lambda: self.reef.source.asks(scenario), received)

    def _show(self) -> None:
        words = self.text.lower().split()
        kept = [
            ask
            for ask in self.found
            if all(word in f"{ask.get('text')} {ask.get('state')} #{ask.get('number')}".lower() for word in words)
        ]
        before = self.current
        self.rows.columns = asks.COLUMNS_OF_ALL if self._several() else asks.COLUMNS
        self.rows.show([asks.row(ask) for ask in kept])
        self.filled()
        # Activity changes while the row stays as it is.
        if before is not None and before == self.current and before.data.get("state") not in asks.SETTLED:
            self._open_current()

    def _several(self) -> bool:
        return len({ask.get("scenario") for ask in self.found}) > 1

    def _served(self, scenario: str) -> asks.Served:
        head = self.reef.scenario_facts(scenario).get("head")
        engine = str(self.reef.engine.get("name") or "")
        return asks.Served(head if isinstance(head, int) else None, engine, scenario if self._several() else "")

    def open_page(self, row: Row) -> None:
        ask = row.data
        scenario = str(ask.get("scenario") or "")

        def work() -> list[Block]:
            return asks.blocks(ask, self.reef.source.progress(ask), lambda: self._served(scenario))

        self.background("page", work, lambda blocks: self.show_page(row.key, blocks))

    def whole_of(self, row: Row) -> Json:
        return row.data | self.reef.source.progress(row.data)

    def do_cancel(self) -> None:
        row = self.current
        if row is None or row.data.get("state") in asks.SETTLED:
            self.reef.say("only a queued or running ask can be cancelled", warn=True)
            return
        number, text = row.data.get("number"), cells.line(row.data.get("text") or "", 300)
        lines = [
            Line.of(f'"{text}"'),
            Line(),
            Line.of(("its step is stopped and keeps its row; nothing is published", "dim")),
        ]
        dialog = Confirm([(f"cancel ask #{number}?", "strong")], [Block("ask", None, lines)], "cancel the ask")
        self.reef.push_screen(dialog, lambda yes: self._cancel(row.key, number) if yes else None)

    def _cancel(self, ask: str, number: Any) -> None:
        def done(_: Json) -> None:
            self.reef.say(f"ask #{number} cancelled · {self.reef.key('ask')} asks again")
            self.reload()

        self.act("cancel", lambda: self.reef.source.call("cancel_ask", ask), done)

    def do_go_version(self) -> None:
        row = self.current
        if row is None or not isinstance(row.data.get("version"), int):
            self.reef.say("this ask has led to no version", warn=True)
        else:
            self.reef.anywhere.show_version(str(row.data.get("scenario")), row.data["version"])

    def show_ask(self, ask: str) -> None:
        """Put the cursor on an ask."""
        self.rows.to_key(ask)
