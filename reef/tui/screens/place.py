"""What the places share: a list at the left, the thing under the cursor at the right, a filter, following, pausing.

A place overrides `fetch` (get the list), `open_page` (get the page of the row under the cursor) and `concerns` (which
events matter to it), and adds its own `do_…` actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input

from reef.tui import actions, cells
from reef.tui.lines import Block, Column, Row, Span
from reef.tui.screens.base import ReefScreen
from reef.tui.screens.copying import Copying
from reef.tui.screens.filtering import Filtering
from reef.tui.widgets.bars import Bar, Header, KeyLine, Notice, Rule
from reef.tui.widgets.document import Document
from reef.tui.widgets.inputs import PlainInput
from reef.tui.widgets.rowlist import Present, RowList
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]
PLACES: tuple[tuple[int, str], ...] = ((1, "Now"), (2, "Traces"), (3, "Asks"), (5, "Versions"))
"""Number and name of each place that is built; a number stays with its place."""

PAGE_DELAY_S = 0.05
FOLLOW_S = 0.1
FILTERED_S = 1.0
LAST_KEYS = ("help", "quit")


class Place(Filtering, Copying, ReefScreen):
    """A list and a page."""

    place: ClassVar[str] = ""
    number: ClassVar[int] = 0
    columns: ClassVar[Sequence[Column]] = ()
    AUTO_FOCUS = "#list"

    DEFAULT_CSS = """
    Place #title { height: 1; width: 100%; }
    Place #filter-mark { width: 2; display: none; }
    Place #filter { width: 6; display: none; }
    Place.-filtering #filter-mark, Place.-filtering #filter { display: block; }
    Place #body { height: 1fr; width: 100%; }
    Place #page { border-left: solid $reef-rule; width: 1fr; }
    Place #list { width: 1fr; }
    Place.-wide #list { width: 50%; }
    Place.-ascii #page { border-left: ascii $reef-rule; }
    Place.-narrow #page, Place.-too-narrow #page { display: none; border-left: none; }
    Place.-narrow.-reading #page, Place.-too-narrow.-reading #page { display: block; }
    Place.-narrow.-reading #list, Place.-too-narrow.-reading #list { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        """What the list is filtered by."""
        self.paused = False
        self.missed = 0
        """Rows that came while paused."""
        self.stale = True
        """Whether something happened since the list was fetched."""
        self._fetched_at = 0.0
        self._reload_timer: Timer | None = None
        self._page_timer: Timer | None = None
        self._page_of: str | None = None
        self._painted_minute = 0

    # to override

    def present(self) -> Present:
        """The function that makes the cells of a row."""
        raise TypeError(f"{type(self).__name__} presents no rows")

    def fetch(self, wanted: Wanted | None = None) -> None:
        """Fetch the list, or the page of it that the list wants."""

    def open_page(self, row: Row) -> None:
        """Fetch what stands at the right for a row."""

    def concerns(self, event: Json) -> bool:
        """Whether an event changes what is shown here."""
        return True

    def fits(self, action: str) -> bool:
        """Whether an action makes sense for the row under the cursor: if not, the line of keys leaves it out."""
        return True

    def empty_lines(self) -> Sequence[Sequence[Span]]:
        """What the list says while it holds nothing: a sentence, and the command that fills it."""
        return ()

    def noun(self) -> str:
        """The word for one row."""
        return "row"

    # composition

    def compose(self) -> ComposeResult:
        yield Header(PLACES, self.number)
        yield Rule()
        with Horizontal(id="title"):
            yield Bar(id="filter-mark")
            yield PlainInput(id="filter", select_on_focus=False, disabled=True)
            yield Bar(id="title-bar")
        with Horizontal(id="body"):
            yield RowList(self.columns, self.present(), id="list")
            yield Document(id="page")
        yield Rule()
        yield KeyLine(id="keys")
        yield Notice()

    def on_mount(self) -> None:
        self.reef.opened.append(self)
        self.set_class(self.reef.ascii_only, "-ascii")
        self.query_one("#filter-mark", Bar).show([(" /", "key")])
        self.rows.focus()
        self.refresh_bars()

    def on_screen_resume(self) -> None:
        self.refresh_bars()
        if self.stale:
            self.reload()

    @property
    def there(self) -> bool:
        """Whether its widgets are there: not before it was opened, and not any more while the app ends."""
        return self.query_one_optional("#keys", KeyLine) is not None

    @property
    def rows(self) -> RowList:
        """The list at the left."""
        return self.query_one("#list", RowList)

    @property
    def page(self) -> Document:
        """The page at the right."""
        return self.query_one("#page", Document)

    @property
    def in_page(self) -> bool:
        """Whether the page has the keys."""
        return self.page.has_focus

    @property
    def current(self) -> Row | None:
        """The row under the cursor of the list."""
        return self.rows.current

    # fetching

    def reload(self) -> None:
        """Fetch what is shown again."""
        self.stale = False
        self._fetched_at = monotonic()
        self.fetch()

    def happened(self, events: Sequence[Json]) -> None:
        """Events came in: fetch again if they matter here and this place is in front."""
        if not any(self.concerns(event) for event in events):
            return
        if self.paused:
            self.missed += sum(event.get("kind") in ("record_opened", "ask_queued") for event in events)
            self.refresh_bars()
        elif self.reef.place is self:
            self._reload_soon()
        else:
            self.stale = True

    def _reload_soon(self) -> None:
        """Fetch again, but not more often than every tenth of a second, or every second with a filter."""
        apart = FILTERED_S if self.text else FOLLOW_S
        wait = self._fetched_at + apart - monotonic()
        if wait <= 0:
            self.reload()
        elif self._reload_timer is None:
            self._reload_timer = self.set_timer(wait, self._reload_now)

    def _reload_now(self) -> None:
        self._reload_timer = None
        self.reload()

    def scenario_changed(self) -> None:
        """Another scenario was chosen: forget the rows."""
        self.rows.forget()
        self.stale = True
        if self.reef.place is self:
            self.reload()

    def background(self, name: str, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run `work` off this thread, then `then` here; an error becomes a toast or a state."""
        self.reef.background.submit(f"{self.place}:{name}", work, then, self.failed)

    def act(self, name: str, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do what the person asked for off this thread, then `then` here; whatever goes wrong is told at once."""
        self.reef.background.submit(f"{self.place}:{name}", work, then, self.reef.show_error)

    def tick(self) -> None:
        """A second went by: relative times are painted anew, those of the list when a minute is over."""
        self.page.tick()
        minute = int(monotonic() // 60)
        if minute != self._painted_minute:
            self._painted_minute = minute
            self.rows.refresh()

    def failed(self, error: Exception) -> None:
        """A fetch did not succeed."""
        self.rows.missed()
        if not self.rows.window.rows:
            self.rows.window.loaded = True
            self.rows.empty = self.reef.error_lines(error)
            self.rows.refresh()
        self.reef.show_error(error, quiet=True)

    def filled(self) -> None:
        """The list was fetched: say what it holds."""
        self.rows.empty = self.reef.no_match(self.text) if self.text else self.empty_lines()
        self.refresh_bars()
        if self.current is None:
            self._page_of = None
            self.page.show("", ())

    @on(RowList.Wants)
    def wants(self, event: RowList.Wants) -> None:
        self.fetch(event.wanted)

    @on(RowList.Moved)
    def moved(self, event: RowList.Moved) -> None:
        if self._page_timer is not None:
            self._page_timer.stop()
        self.refresh_bars()
        if event.row is not None:
            self._page_timer = self.set_timer(PAGE_DELAY_S, self._open_current)

    def _open_current(self) -> None:
        if self.current is not None:
            self._page_of = self.current.key
            self.open_page(self.current)

    def show_page(self, key: str, blocks: Sequence[Block]) -> None:
        """Show the page of a row if the cursor is still on it."""
        if self._page_of == key:
            self.page.show(key, blocks)

    @on(RowList.Opened)
    def clicked(self) -> None:
        self.do_open()

    # Textual collects handlers from its own classes only, so these stand here and not in the mixin.
    @on(Input.Changed, "#filter")
    def filter_changed(self, event: Input.Changed) -> None:
        self.filter_typed(event)

    @on(Input.Submitted, "#filter")
    def filter_taken(self, event: Input.Submitted) -> None:
        self.filter_submitted(event)

    @on(Header.Chosen)
    def chosen(self, event: Header.Chosen) -> None:
        self.reef.go(event.number)

    # bars

    def refresh_bars(self) -> None:
        """Paint header, title and keys anew."""
        if not self.there:
            return
        header = self.query_one("#header", Header)
        header.show(header.left, self.reef.header_forms())
        header.refresh()
        self.query_one("#title-bar", Bar).show(self.title_left(), [self.title_right()])
        found = [a for a in actions.offered(self.place) if a.label and a.id not in LAST_KEYS and self.fits(a.id)]
        keys = [(self.reef.key(a.id), a.label) for a in sorted(found, key=lambda action: action.weight)]
        last = [(self.reef.key(name), actions.BY_ID[name].label) for name in LAST_KEYS]
        self.query_one("#keys", KeyLine).show_keys(keys, last)

    def title_left(self) -> list[Span]:
        """How many rows there are, and how many are newer than those in view."""
        window = self.rows.window
        total = max(window.total, len(window.rows))
        count = f"{total:,} {self.noun()}" + ("" if total == 1 else "s")
        if self.text:
            count = f"{total:,} of {self.whole():,}" if self.whole() >= total else f"{total:,} found"
        spans: list[Span] = [(f" {count}", "dim")]
        if len(self.reef.status.get("scenarios") or ()) > 1:
            where = cells.line(self.reef.read_scenario or "all scenarios", 40)
            spans.append((f" · {where}", "dim"))
        if window.above:
            spans.append((f"  ↑ {window.above:,} newer · {self.reef.key('top')}", "accent"))
        return spans

    def whole(self) -> int:
        """Rows without the filter, as far as is known."""
        return 0

    def title_right(self) -> list[Span]:
        """Whether the list follows."""
        if "pause" not in {action.id for action in actions.offered(self.place)}:
            return []
        key = self.reef.key("pause")
        if self.paused:
            return [(f"paused · {self.missed} new", "accent"), (f" · {key} follows ", "dim")]
        if not self.reef.is_up:
            return [("not following ", "dim")]
        return [("following", "good"), (f" · {key} pauses ", "dim")]

    # actions

    def do_open(self) -> None:
        if self.in_page:
            self.page.toggle()
        elif self.current is not None:
            self.add_class("-reading")
            self.page.focus()

    def do_back(self) -> None:
        if self.in_page:
            self.remove_class("-reading")
            self.rows.focus()
        elif self.has_class("-filtering"):
            self.clear_filter()

    def do_down(self) -> None:
        (self.page if self.in_page else self.rows).move(1)

    def do_up(self) -> None:
        (self.page if self.in_page else self.rows).move(-1)

    def do_page_down(self) -> None:
        self._turn(1)

    def do_page_up(self) -> None:
        self._turn(-1)

    def _turn(self, direction: int) -> None:
        if self.in_page:
            self.page.turn(direction)
        else:
            self.rows.page(direction)

    def do_top(self) -> None:
        (self.page if self.in_page else self.rows).to_top()

    def do_bottom(self) -> None:
        (self.page if self.in_page else self.rows).to_bottom()

    def do_other_pane(self) -> None:
        if self.in_page:
            self.do_back()
        else:
            self.do_open()

    def do_pause(self) -> None:
        self.paused = not self.paused
        if not self.paused:
            self.missed = 0
            self.reload()
        self.refresh_bars()

    def do_reload(self) -> None:
        self.reload()
        self.reef.refresh_status()
