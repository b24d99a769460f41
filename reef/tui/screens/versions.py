"""Place 5: the chain of versions with the attempts between them; what the one under the cursor changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from reef.errors import DaemonUnreachable, ReefError
from reef.tui import actions, cells
from reef.tui.lines import Block, Column, Line, Row, Span
from reef.tui.screens.deciding import Deciding
from reef.tui.screens.dialogs import Choosing
from reef.tui.screens.keeping import Keeping
from reef.tui.screens.place import Place
from reef.tui.source import Source
from reef.tui.views import versions
from reef.tui.widgets.rowlist import Present
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]


class Versions(Deciding, Keeping, Place):
    """The versions of one scenario."""

    place: ClassVar[str] = "versions"
    number: ClassVar[int] = 5
    columns: ClassVar[Sequence[Column]] = versions.COLUMNS
    BINDINGS = actions.bindings(actions.offered("versions"))

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Row] = []
        self.chain: list[Json] = []
        """The versions alone, newest first."""
        self.compared: tuple[str, int] | None = None
        """Row key and the version it is compared with instead of the one before it."""
        self.go_to: str | None = None

    def present(self) -> Present:
        return versions.present

    def noun(self) -> str:
        return "row"

    def fits(self, action: str) -> bool:
        row = self.current
        version = row.data if row is not None and versions.is_version(row) else None
        if action in ("promote", "rollback", "install", "diff", "try_version", "pin") and version is None:
            return False
        if version is not None and action in ("promote", "rollback"):
            return versions.is_pending(version) == (action == "promote") and not version.get("current")
        return True

    def whole(self) -> int:
        return len(self.found)

    def concerns(self, event: Json) -> bool:
        return str(event.get("kind")).startswith(("version", "head", "step", "scenario", "harness"))

    def empty_lines(self) -> Sequence[Sequence[Span]]:
        return (
            [
                ("   no versions yet", "dim"),
                (" · ", "faint"),
                ('reef ask "…"', "code"),
                (" or press ", "dim"),
                (self.reef.key("ask"), "key"),
            ],
        )

    def title_left(self) -> list[Span]:
        if self.text:
            return super().title_left()
        name = cells.line(self.reef.scenario, 40)
        tried = len(self.found) - len(self.chain)
        return [
            (f" {name}", "strong"),
            (f"  {len(self.chain)} version{'s' if len(self.chain) != 1 else ''}", "dim"),
            (f" · {tried} attempt{'s' if tried != 1 else ''} without one" if tried else "", "dim"),
        ]

    def title_right(self) -> list[Span]:
        head = versions.head_of(self.chain)
        waiting = [f"v{version['version']}" for version in self.chain if versions.state(version)[0].startswith("▲")]
        spans: list[Span] = [(f"head v{head['version']}" if head else "", "dim")]
        kept = [f"v{version['version']}" for version in self.chain if version.get("pinned")]
        if kept:
            spans += [(" · ", "faint"), (f"pinned {', '.join(kept[:3])}", "dim")]
        if waiting:
            spans += [(" · ", "faint"), (f"{', '.join(waiting[:3])} needs you", "accent")]
        return [*spans, (" ", "")]

    def fetch(self, wanted: Wanted | None = None) -> None:
        scenario = self.reef.scenario

        def work() -> tuple[list[Json], list[Json]]:
            return self.reef.source.versions(scenario), self.reef.source.steps(scenario)

        def received(both: tuple[list[Json], list[Json]]) -> None:
            if scenario == self.reef.scenario:
                self.chain = both[0]
                self.found = versions.rows(*both)
                self._show()

        self.background("list", work, received)

    def _show(self) -> None:
        words = self.text.lower().split()
        self.rows.show([row for row in self.found if all(word in _said(row) for word in words)])
        self.filled()
        if self.go_to is not None and self.rows.to_key(self.go_to):
            self.go_to = None

    def open_page(self, row: Row) -> None:
        scenario = self.reef.scenario
        if not versions.is_version(row):
            number = int(row.data["number"])
            source = self.reef.source

            def read() -> list[Block]:
                return versions.step_blocks(source.step(scenario, row.data, number))

            self.background("page", read, lambda blocks: self.show_page(row.key, blocks))
            return
        if self.compared is not None and self.compared[0] != row.key:
            self.compared = None
        other = self.compared[1] if self.compared else versions.parent_number(row.data, self.chain)
        source, compared = self.reef.source, self.compared is not None
        self.background(
            "page",
            lambda: _version_page(source, scenario, row.data, other, compared),
            lambda blocks: self.show_page(row.key, blocks),
        )

    def whole_of(self, row: Row) -> Json:
        if versions.is_version(row):
            return self.reef.source.version(self.reef.scenario, int(row.data["version"]))
        return self.reef.source.step(self.reef.scenario, row.data, int(row.data["number"]))

    def do_diff(self) -> None:
        row = self.current
        if row is None or not versions.is_version(row):
            self.reef.say("only a version can be compared", warn=True)
            return
        options = [
            (f"v{version['version']}", {"name": f"v{version['version']}", "more": versions.what(version)})
            for version in self.chain
            if version["version"] != row.data["version"]
        ]

        def chosen(key: str | None) -> None:
            if key is not None and self.current is not None and self.current.key == row.key:
                self.compared = (row.key, int(key[1:]))
                self._open_current()

        heading = [("compare ", "dim"), (row.key, "strong"), (" with", "dim")]
        self.reef.push_screen(Choosing(heading, options), chosen)

    def id_of(self, row: Row | None) -> str:
        return str(row.data.get("release_id") or row.key) if row is not None else ""

    def show_number(self, number: int) -> None:
        """Put the cursor on a version once its row is there."""
        if not self.rows.to_key(f"v{number}"):
            self.go_to = f"v{number}"


def _said(row: Row) -> str:
    found = versions.present(row)
    return " ".join(cell.text for cell in found.values()).lower() + f" {row.data.get('summary')}".lower()


def _version_page(source: Source, scenario: str, version: Json, other: int | None, compared: bool) -> list[Block]:
    number = int(version["version"])
    try:
        whole = source.version(scenario, number)
        files = None if other is None else source.diff(scenario, f"v{other}", f"v{number}")
    except DaemonUnreachable:
        blocks = versions.blocks(version, other, None, None)
        return [*blocks, Block("down", None, [Line.of(("the difference needs the daemon · u starts it", "accent"))])]
    except ReefError as error:
        blocks = versions.blocks(version, other, None, None)
        return [*blocks, Block("error", None, [Line.of((cells.line(error.message, 400), "failed"))])]
    blocks = versions.blocks(version | {"current": whole.get("current")}, other, files, whole)
    if compared:
        blocks.insert(1, Block("compared", None, [Line.of((f"compared with v{other}", "accent")), Line()]))
    return blocks
