"""What the actions over versions share: the chain, and the version under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reef.tui.views import versions

if TYPE_CHECKING:
    from reef.tui.screens.place import Place

    class _Base(Place):
        chain: list[dict[str, Any]]

else:
    _Base = object


class OfVersions(_Base):
    """Beside the place of versions, for what adds actions to it."""

    def under_cursor(self, verb: str) -> dict[str, Any] | None:
        """The version under the cursor; None, and a word about it, where there is none to `verb`."""
        row = self.current
        if row is None or not versions.is_version(row):
            self.reef.say(f"put the cursor on a version to {verb} it", warn=True)
            return None
        return row.data
