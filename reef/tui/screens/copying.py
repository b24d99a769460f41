"""Copying from a place: the id or the part under the cursor, all of it as JSON, or all of it to a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

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

else:
    _Base = object


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
        if self.current is not None:
            text = json.dumps(self.current.data, ensure_ascii=False, indent=2)
            self.reef.copy(text, f"{self.place}.json", "all of it as JSON")

    def do_export(self) -> None:
        if self.current is not None:
            text = json.dumps(self.current.data, ensure_ascii=False, indent=2)
            self.reef.export(f"{self.place}-{self.current.key[:12]}.json", text)

    def id_of(self, row: Row | None) -> str:
        """What is copied for a row: its id."""
        return row.key if row is not None else ""
