"""What every screen of reef has: breakpoints, the notice below the least size, and actions by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from reef.tui.lines import Span
from reef.tui.theme import drawn
from reef.tui.widgets.bars import Bar, KeyLine, Notice

if TYPE_CHECKING:
    from reef.tui.app import ReefApp

LEAST_COLUMNS = 60
LEAST_LINES = 15
Result = TypeVar("Result")

WIDTHS = [(0, "-too-narrow"), (LEAST_COLUMNS, "-narrow"), (80, "-two"), (120, "-wide")]
HEIGHTS = [(0, "-too-low"), (LEAST_LINES, "-high")]


class ReefScreen(Screen[None]):
    """A full screen."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    DEFAULT_CSS = "ReefScreen { layers: base notice; background: $background; color: $foreground; }"

    @property
    def reef(self) -> ReefApp:
        """The app."""
        return cast("ReefApp", self.app)

    def action_act(self, name: str) -> None:
        """Do the action of that id: a method `do_<id>` of this screen, else one of everywhere."""
        do = getattr(self, f"do_{name}", None) or getattr(self.reef.anywhere, f"do_{name}")
        do()


class Dialog(ModalScreen[Result]):
    """A question over a place: a title, content, one line of keys; esc leaves it."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("escape", "leave", "leave", show=False)
    ]
    DEFAULT_CSS = """
    Dialog { layers: base notice; align: center middle; background: $background 60%; color: $foreground; }
    Dialog > .sheet {
        width: 90%; max-width: 100; height: auto; max-height: 90%;
        background: $panel; padding: 1 2;
    }
    Dialog > .sheet > Bar { background: $panel; }
    Dialog > .sheet > #dialog-keys { margin-top: 1; }
    """

    heading: Sequence[Span] = ()
    keys: Sequence[tuple[str, str]] = (("esc", "leave"),)

    @property
    def reef(self) -> ReefApp:
        """The app."""
        return cast("ReefApp", self.app)

    def drawn(self, text: str) -> str:
        """Reef's own text for a Textual widget, in ASCII if so wished."""
        return drawn(text, self.reef.ascii_only)

    def content(self) -> ComposeResult:
        """The widgets between title and keys."""
        yield from ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Bar(id="heading")
            yield from self.content()
            yield KeyLine(id="dialog-keys")
        yield Notice()

    def on_mount(self) -> None:
        self.query_one("#heading", Bar).show([(" ", ""), *self.heading])
        self.query_one("#dialog-keys", KeyLine).show_keys((), self.keys)

    def action_leave(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)
