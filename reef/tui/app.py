"""`reef tui`: the app that holds the places, the connection to the daemon, and what every place shows.

Handlers run in the app's thread and own all state; fetching is done by `background` and `live`, which hand their
outcome over as messages.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import App
from textual.binding import Binding
from textual.content import Content
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from reef.client import current_scenario
from reef.config import TuiSection, load
from reef.errors import DaemonUnreachable, ReefError
from reef.paths import Paths
from reef.tui import actions, cells, clipboard
from reef.tui.background import Background, Finished
from reef.tui.lines import Block, Line, Span
from reef.tui.live import Follower
from reef.tui.screens.anywhere import Anywhere
from reef.tui.screens.asks import Asks
from reef.tui.screens.dialogs import Reading, error_blocks
from reef.tui.screens.now import Now
from reef.tui.screens.place import Place
from reef.tui.screens.traces import Traces
from reef.tui.screens.versions import Versions
from reef.tui.source import Source
from reef.tui.theme import DARK, LIGHT, NoColour, drawn, first_theme, wants_ascii
from reef.tui.views.now import engine_text

Json = dict[str, Any]
DRAIN_S = 0.1
"""Events are taken ten times a second at most, so that a busy daemon does not repaint the screen all the time."""
TICK_S = 1.0
STATUS_S = 5.0
STATUS_AFTER_EVENTS_S = 1.0
"""The status counts everything the daemon holds, so a busy daemon is asked once a second."""
PLACE_NAMES = {1: "now", 2: "traces", 3: "asks", 5: "versions"}


class Told(Message):
    """Progress of long work, from its thread."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class ReefApp(App[int]):
    """The full-screen view."""

    TITLE = "reef"
    ENABLE_COMMAND_PALETTE = False
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        "now": Now,
        "traces": Traces,
        "asks": Asks,
        "versions": Versions,
    }
    BINDINGS: ClassVar[list[Any]] = [Binding("ctrl+q", "quit", show=False, priority=True)]
    CSS = """
    Toast { background: $panel; padding: 0 1; width: auto; max-width: 90%; margin-top: 0; }
    Toast.-information { border-left: none; color: $foreground; }
    Toast.-warning { border-left: none; color: $accent; }
    Toast.-error { border-left: none; color: $error; }
    ToastRack { margin-bottom: 2; }
    Screen { overflow: hidden; }
    Screen.-too-narrow Notice { display: block; }
    Screen.-too-low Notice { display: block; }
    """

    def __init__(
        self,
        paths: Paths | None = None,
        scenario: str | None = None,
        settings: TuiSection | None = None,
        place: str = "now",
    ) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = first_theme()
        self.paths = paths or Paths.from_environ()
        self.tui_settings = settings or load(paths=self.paths).settings.tui
        actions.check_keys(self.tui_settings.keys)
        self.ascii_only = wants_ascii(self.tui_settings.ascii)
        self.source = Source(self.paths)
        self.background = Background(self.post_message)
        self.follower = Follower(self.source.events)
        self.first_place = place
        self.scenario, self.scenario_origin = current_scenario(self.paths, scenario)
        self.all_scenarios = scenario is None
        self.status: Json = {}
        self.activity = ""
        """Progress of long work, shown in the header; empty when there is none."""
        self.anywhere = Anywhere(self)
        self.opened: list[Place] = []
        """Every place that was opened so far: their widgets are there."""
        self._was = ""
        self._lost = False
        self._status_due = False

    # starting and ending

    def on_mount(self) -> None:
        self.set_keymap(dict(self.tui_settings.keys))
        self.switch_mode(self.first_place)
        self.refresh_status()
        self.follower.start()
        self.set_interval(DRAIN_S, self.take_events)
        self.set_interval(TICK_S, self._tick)
        self.set_interval(STATUS_S, self.refresh_status)
        self.set_interval(STATUS_AFTER_EVENTS_S, self._status_after_events)

    def on_unmount(self) -> None:
        self.follower.stop()
        self.background.stop()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return DARK.variables

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [NoColour()] if self.no_color else super().get_line_filters()

    # places

    @property
    def place(self) -> Place | None:
        """The place in front, under whatever dialog is open."""
        found = [screen for screen in self.screen_stack if isinstance(screen, Place)]
        return found[-1] if found else None

    @property
    def leaving(self) -> bool:
        """Whether the app ends: the widgets of its places are taken away before its last messages come."""
        return any(not place.there for place in self.opened)

    def go(self, number: int) -> None:
        """Go to the place of that number."""
        name = PLACE_NAMES.get(number)
        if name is not None and self.current_mode != name and len(self.screen_stack) == 1:
            self.switch_mode(name)

    def place_of(self, number: int) -> Place | None:
        """Go to a place and return it."""
        self.go(number)
        return self.place

    # what the header says

    @property
    def is_up(self) -> bool:
        """Whether a daemon answers."""
        return self.source.state == "up"

    @property
    def address(self) -> str:
        """The daemon's address as clients need it."""
        return cells.line(self.status.get("url") or "http://127.0.0.1:8900", 60)

    @property
    def engine(self) -> Json:
        """The daemon's own engine, as the status describes it; empty when nothing is known."""
        found = self.status.get("engine")
        return found if isinstance(found, dict) else {}

    @property
    def read_scenario(self) -> str | None:
        """The scenario whose calls and asks are listed; None for all."""
        return None if self.all_scenarios else self.scenario

    def scenario_facts(self, name: str) -> Json:
        """What the status says about a scenario."""
        rows = self.status.get("scenarios") or ()
        return next((row for row in rows if isinstance(row, dict) and row.get("name") == name), {})

    def adapter_of(self, scenario: str) -> str:
        """The coding agent of a scenario."""
        return cells.line(self.scenario_facts(scenario).get("adapter") or "pi", 40)

    def header_forms(self) -> list[list[Span]]:
        """The right side of the header, long to short."""
        head = self.scenario_facts(self.scenario).get("head")
        served = f"{cells.line(self.scenario, 24)} · v{head}" if head else cells.line(self.scenario, 24)
        engine = self.engine
        named = engine_text(engine) if engine else ""
        model = cells.line(engine.get("model") or "", 40) if engine.get("state") in ("ready", None) else ""
        state = self._state_spans()
        if self.activity:
            return [[(f"… {cells.line(self.activity, 60)} ", "accent"), *state], [("… ", "accent"), *state], state]
        forms: list[list[Span]] = []
        if named:
            forms.append([(f"{served} · {cells.cut(named, 32)} · ", "dim"), *state])
            for short in (model, cells.cut(model or named, 10)):
                forms += [[(f"{served} · {short} · ", "dim"), *state]] if short else []
        forms.append([(f"{served} · ", "dim"), *state])
        forms.append(state)
        return forms

    def _state_spans(self) -> list[Span]:
        if self.source.state == "up":
            return [("● up ", "good")]
        if self.source.state == "connecting":
            return [("… ", "dim")]
        if self.source.state == "other version":
            return [("✗ other version ", "failed")]
        return [
            ("○ down ", "failed"),
            ("· ", "faint"),
            (self.key("start_daemon"), "key"),
            (" starts it ", "dim"),
        ]

    def key(self, name: str) -> str:
        """The first key of the action of that id, as it is printed."""
        keys = actions.keys_of(actions.BY_ID[name], self.tui_settings.keys)
        return actions.key_name(keys[0]) if keys else ""

    # events and status

    def take_events(self) -> None:
        """Hand the events since the last time to the places."""
        if self.leaving:
            return
        events = self.follower.drain()
        lost = self.follower.lost is not None
        if lost != self._lost or self.source.state != self._was:
            self._lost = lost
            self.refresh_status()
        if events:
            self._status_due = True
            self.for_each_place(lambda place: place.happened(events))

    def for_each_place(self, do: Callable[[Place], None]) -> None:
        """Call `do` for every place that was opened, in front or not."""
        for place in self.opened:
            do(place)

    def _tick(self) -> None:
        """Time goes by: what tells relative times in front is painted anew."""
        if (place := self.place) in self.opened and place is not None and place.there:
            place.tick()

    def _status_after_events(self) -> None:
        if self._status_due:
            self._status_due = False
            self.refresh_status()

    def refresh_status(self) -> None:
        """Fetch the status; a lost or found daemon reloads what is shown."""
        self.background.submit("status", self.source.status, self._status_came, self._status_failed)

    def _status_came(self, status: Json) -> None:
        self.status = status
        self._choose_first_scenario()
        self._state_changed()

    def _status_failed(self, error: Exception) -> None:
        if not isinstance(error, ReefError):
            self.show_error(error)
        self._state_changed()

    def _state_changed(self) -> None:
        place = self.place if self.place in self.opened else None
        if self._was not in ("", self.source.state) and place is not None:
            place.reload()
        self._was = self.source.state
        if isinstance(place, Now):
            place.status_changed()
        if place is not None:
            place.refresh_bars()

    def _choose_first_scenario(self) -> None:
        """Nobody named a scenario: the one with calls is more of a welcome than an empty `default`."""
        if self.scenario_origin != "default":
            return
        rows = [row for row in self.status.get("scenarios") or () if isinstance(row, dict)]
        if not self.scenario_facts(self.scenario).get("records"):
            busiest = max(rows, key=lambda row: row.get("records") or 0, default=None)
            if busiest is not None and busiest.get("records") and busiest["name"] != self.scenario:
                self.scenario = str(busiest["name"])
                self.for_each_place(lambda place: place.scenario_changed())
        self.scenario_origin = "tui"

    @on(Finished)
    def finished(self, event: Finished) -> None:
        """Work ended off this thread."""
        if self.leaving:
            return
        if event.error is None:
            event.task.then(event.value)
        elif event.task.failed is not None:
            event.task.failed(event.error)
        else:
            self.show_error(event.error)

    def tell(self, text: str) -> None:
        """Say how far long work is; may be called from any thread."""
        self.post_message(Told(text))

    @on(Told)
    def told(self, event: Told) -> None:
        self.activity = event.text
        if self.place is not None:
            self.place.refresh_bars()

    # saying things

    def plain(self, text: str) -> Content:
        """Text for a Textual widget that would otherwise read it as markup."""
        return Content(drawn(cells.shown(text), self.ascii_only))

    def say(self, text: str, warn: bool = False) -> None:
        """A toast: what happened, and how to undo it."""
        message = drawn(cells.shown(text), self.ascii_only)
        self.notify(message, severity="warning" if warn else "information", timeout=6, markup=False)

    def show_error(self, error: Exception, quiet: bool = False) -> None:
        """An error as a toast with its hint; one that reef did not raise on purpose as a page that can be copied.

        With `quiet` a daemon that does not answer is left to the header.
        """
        if isinstance(error, DaemonUnreachable) and quiet:
            self._state_changed()
            return
        if isinstance(error, ReefError):
            message = error.message + (f"\nhint: {error.hint}" if error.hint else "")
            self.notify(drawn(cells.shown(message), self.ascii_only), severity="error", timeout=10, markup=False)
            return
        text = "".join(traceback.format_exception(error))
        lines = [Line.of((part, "dim")) for part in cells.shown(text).split("\n")]
        blocks = [
            *error_blocks(f"{type(error).__name__}: {error}", "reef logs"),
            Block("trace", None, [Line(), *lines]),
        ]
        self.push_screen(Reading([("reef tui made a mistake", "failed")], blocks, text))

    def error_lines(self, error: Exception) -> Sequence[Sequence[Span]]:
        """An error as what an empty list says."""
        message = error.message if isinstance(error, ReefError) else str(error)
        lines: list[list[Span]] = [[(f"   {cells.line(message, 200)}", "dim")]]
        if isinstance(error, DaemonUnreachable):
            key = self.key("start_daemon")
            lines.append([("   reef up", "code"), (" or press ", "dim"), (key, "key")])
        elif isinstance(error, ReefError) and error.hint:
            lines.append([("   hint: ", "dim"), (cells.line(error.hint, 200), "code")])
        return lines

    def no_match(self, text: str) -> Sequence[Sequence[Span]]:
        """What a list says that a filter leaves empty."""
        return (
            [
                (f'   nothing matches "{cells.line(text, 60)}"', "dim"),
                (" · ", "faint"),
                ("esc", "key"),
                (" clears", "dim"),
            ],
        )

    # copying

    def copy(self, text: str, name: str, what: str) -> None:
        """Copy text and say where it went."""

        def copied(where: clipboard.Copied) -> None:
            if where.path is None:
                self.copy_to_clipboard(text)
                self.say(
                    f"{what} → your terminal's clipboard (OSC 52); nothing there? {self.key('export')} writes a file"
                )
            else:
                self.say(f"{what} → {where.path} ({where.why})")

        self.background.submit("copy", lambda: clipboard.place(text, name, self.paths), copied)

    def export(self, name: str, text: str) -> None:
        """Write text to a file and say which."""
        self.background.submit(
            "export", lambda: clipboard.write(text, name, self.paths), lambda path: self.say(f"written to {path}")
        )


def run(scenario: str | None = None) -> int:
    """Open the full-screen view and return its exit status when the person leaves it, 1 when it broke."""
    app = ReefApp(scenario=scenario)
    # What a person leaves with comes first; an app that broke has none and a return code of its own.
    return app.run() or app.return_code or 0
