"""Copying from a place: the id or the part under the cursor, all of it as JSON, or all of it to a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from reef.tui import cells

if TYPE_CHECKING:
    from reef.tui.lines import Row
    from reef.tui.screens.base import ReefScreen
    from reef.tui.widgets.document import Document

    class _Base(ReefScreen):
        place: ClassVar[str]

        @property
        def in_page(self) -> bool: ...
        @property
        def page(self) -> Document: ...
        @property
        def current(self) -> Row | None: ...
        def act(self, name: str, work: Callable[[], Any], then: Callable[[Any], None]) -> None: ...

else:
    _Base = object

Json = dict[str, Any]


class Copying(_Base):
    """Adds `y`, `Y`, `e` to a place."""

    def do_copy(self) -> None:
        block = self.page.current if self.in_page else None
        text = block.copy if block is not None and block.copy else self.id_of(self.current)
        if not text:
            self.reef.say("nothing under the cursor to copy", warn=True)
            return
        self.reef.copy(text, f"{self.place}.txt", cells.line(text, 40))

    def do_copy_json(self) -> None:
        self._with_whole(lambda text: self.reef.copy(text, f"{self.place}.json", "all of it as JSON"))

    def do_export(self) -> None:
        row = self.current
        if row is not None:
            name = f"{self.place}-{row.key[:12]}.json"
            self._with_whole(lambda text: self.reef.export(name, text))

    def _with_whole(self, then: Callable[[str], None]) -> None:
        row = self.current
        if row is None:
            self.reef.say("nothing under the cursor to copy", warn=True)
            return
        self.act("whole", lambda: json.dumps(self.whole_of(row), ensure_ascii=False, indent=2, default=str), then)

    def whole_of(self, row: Row) -> Json:
        """All there is about a row; may block, called off the app's thread."""
        return row.data

    def id_of(self, row: Row | None) -> str:
        """What is copied for a row: its id."""
        return row.key if row is not None else ""
