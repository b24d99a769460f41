"""The actions that every place offers: going, asking, choosing the scenario, help, palette, starting the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reef.ids import new_id
from reef.tui import actions, cells
from reef.tui.lines import Block, Line
from reef.tui.screens.dialogs import Choosing, Reading, Writing
from reef.tui.theme import DARK, LIGHT, SYMBOLS
from reef.tui.views import asks

if TYPE_CHECKING:
    from reef.tui.app import ReefApp

Json = dict[str, Any]
ALL = "*"
"""Key of `all scenarios` in the list to choose from; no scenario can be called that."""

QUIET = ("list", "go", "reef")
"""Groups of actions that come last in help and palette: people know them."""


class Anywhere:
    """The `do_…` methods that a screen does not have itself."""

    def __init__(self, app: ReefApp) -> None:
        self.app = app
        self.unsent_ask = ""
        """The words of an ask that was refused, so that they are not lost."""
        self.last_report: tuple[str, str, int | None] | None = None
        """Id and words of the last rating, and the number of the revision that it is, for undo."""

    def do_place_now(self) -> None:
        self.app.go(1)

    def do_place_traces(self) -> None:
        self.app.go(2)

    def do_place_asks(self) -> None:
        self.app.go(3)

    def do_place_versions(self) -> None:
        self.app.go(5)

    def do_back(self) -> None:
        """Nothing is open."""

    def do_quit(self) -> None:
        self.app.exit(0)

    def do_reload(self) -> None:
        if self.app.place is not None:
            self.app.place.reload()

    def do_theme(self) -> None:
        self.app.theme = LIGHT.name if self.app.theme == DARK.name else DARK.name

    def show_receipt(self, receipt: str) -> None:
        """Go to a call in Traces."""
        from reef.tui.screens.traces import Traces

        def there() -> None:
            if isinstance(self.app.place, Traces):
                self.app.place.show_receipt(receipt)

        self.app.all_scenarios = True
        self.app.go(2)
        self.app.call_after_refresh(there)

    def show_version(self, scenario: str, number: int) -> None:
        """Go to a version in Versions, of whatever scenario."""
        from reef.tui.screens.versions import Versions

        def there() -> None:
            if isinstance(self.app.place, Versions):
                self.app.place.show_number(number)

        if scenario and scenario != self.app.scenario:
            self._take_scenario(scenario, everywhere=self.app.all_scenarios)
        self.app.go(5)
        self.app.call_after_refresh(there)

    # asking

    def do_ask(self) -> None:
        about = "one sentence about what your agent should do differently from now on"
        heading = [("ask ", "strong"), (cells.line(self.app.scenario, 40), "dim")]
        hint = "when I ask you to fix a bug, reproduce it with a failing test first"
        self.app.push_screen(Writing(heading, about, hint, "ask", self.unsent_ask), self._ask)

    def _ask(self, text: str | None) -> None:
        if not text:
            return
        scenario = self.app.scenario
        name = new_id()
        self.unsent_ask = text

        def queued(reply: Json) -> None:
            self.unsent_ask = ""
            engine = str(self.app.engine.get("name") or "")
            shows = f"{self.app.key('place_asks')} shows it"
            self.app.say(f"ask #{reply.get('number')} queued · {asks.price(engine)} · {shows}")
            if self.app.place is not None:
                self.app.place.reload()

        self.app.background.submit("ask", lambda: self.app.source.call("train", scenario, text, id=name), queued)

    # undo

    def rated(self, report: str, said: str, revision: int | None = None) -> None:
        """A rating was stored: say so, with the way back."""
        self.last_report = (report, said, revision)
        self.app.say(f"{said} · {self.app.key('undo')} takes it back")

    def do_undo(self) -> None:
        if self.last_report is None:
            self.app.say("no rating to take back", warn=True)
            return
        report, said, revision = self.last_report
        what: tuple[Any, ...] = ("withdraw_report", report)
        if revision is not None:
            what = ("undo_revision", report, revision)

        def withdrawn(_: Json) -> None:
            self.last_report = None
            self.app.say(f"taken back: {said}")
            if self.app.place is not None:
                self.app.place.reload()

        self.app.background.submit("undo", lambda: self.app.source.call(*what), withdrawn)

    # scenario

    def do_scenario(self) -> None:
        rows = [row for row in self.app.status.get("scenarios") or () if isinstance(row, dict)]
        options: list[tuple[str, dict[str, str]]] = [(ALL, {"name": "all scenarios", "more": "calls and asks of all"})]
        for row in rows:
            more = " · ".join(
                str(part)
                for part in (
                    row.get("recipe"),
                    f"v{row['head']}" if row.get("head") else "",
                    f"{row.get('records', 0)} calls",
                )
                if part
            )
            options.append((str(row["name"]), {"name": str(row["name"]), "more": more}))

        def chosen(key: str | None) -> None:
            if key is not None:
                self._take_scenario(self.app.scenario if key == ALL else key, everywhere=key == ALL)

        self.app.push_screen(Choosing([("scenario", "strong")], options), chosen)

    def _take_scenario(self, scenario: str, everywhere: bool) -> None:
        self.app.scenario, self.app.all_scenarios = scenario, everywhere
        self.app.for_each_place(lambda place: place.scenario_changed())

    # daemon

    def do_start_daemon(self) -> None:
        if self.app.is_up:
            self.app.say("the daemon is up already")
            return
        self.app.tell("starting the daemon")

        def started(_: None) -> None:
            self.app.tell("")
            self.app.say("the daemon is up · reef down stops it")
            self.app.refresh_status()

        def failed(error: Exception) -> None:
            self.app.tell("")
            self.app.show_error(error)

        self.app.background.submit("start", self.app.source.start, started, failed, own_thread=True)

    # help and palette

    def do_palette(self) -> None:
        place = self.app.place
        if place is None:
            return
        options = [
            (
                action.id,
                {"name": f"{actions.GROUPS[action.group]}: {action.help}", "more": "", "key": self.app.key(action.id)},
            )
            for action in sorted(actions.offered(place.place), key=lambda action: action.group in QUIET)
            if action.id != "palette"
        ]

        def chosen(key: str | None) -> None:
            if key is not None:
                place.action_act(key)

        self.app.push_screen(Choosing([("all actions", "strong")], options), chosen)

    def do_help(self) -> None:
        place = self.app.place
        if place is None:
            return
        blocks = help_blocks(place.place, self.app.tui_settings.keys)
        text = "\n".join(line.text for block in blocks for line in block.lines())
        self.app.push_screen(Reading([(f"{place.number} {place.place}", "strong"), ("  keys", "dim")], blocks, text))


def help_blocks(place: str, changed: dict[str, str]) -> list[Block]:
    """The keys of a place, by group, then what the symbols mean: made from the table of actions."""
    blocks: list[Block] = []
    found = actions.offered(place)
    groups = sorted({action.group for action in found}, key=lambda g: (g in QUIET, list(actions.GROUPS).index(g)))
    for group in groups:
        lines = []
        for action in found:
            if action.group == group:
                keys = " ".join(actions.key_name(key) for key in actions.keys_of(action, changed)) or "ctrl+p"
                lines.append(Line.of((cells.fit(keys, 16), "key"), action.help, hang=16))
        blocks.append(Block(group, None, [Line.of((actions.GROUPS[group].upper(), "heading")), *lines, Line()]))
    marks = [Line.of((cells.fit(symbol, 16), "accent"), words, hang=16) for symbol, _, words in SYMBOLS]
    blocks.append(Block("symbols", None, [Line.of(("SYMBOLS", "heading")), *marks, Line()]))
    note = "change a key in config.yaml by its action's name, for example  tui: {keys: {rate_good: g}}"
    names = ", ".join(action.id for action in found)
    blocks.append(Block("names", None, [Line.of((note, "dim")), Line.of((f"names: {names}", "dim"), hang=7)]))
    return blocks
