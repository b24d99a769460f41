"""Rating a call, wherever calls are listed: good, bad, with a note, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reef.ids import new_id
from reef.rating import Rated
from reef.text import short_id
from reef.tui import cells, figures
from reef.tui.screens.dialogs import Writing

if TYPE_CHECKING:
    from reef.tui.lines import Row
    from reef.tui.screens.place import Place

    _Base = Place
else:
    _Base = object

GOOD, BAD = 1.0, 0.0
Json = dict[str, Any]


class Rating(_Base):
    """Adds `+`, `-`, `n` to a place whose rows are calls."""

    def do_rate_good(self) -> None:
        self._rate(GOOD, "")

    def do_rate_bad(self) -> None:
        self._rate(BAD, "")

    def do_note(self) -> None:
        row = self._rated()
        if row is None:
            return
        about = cells.line(row.data.get("preview") or row.key, 120)
        heading = [("note on ", "dim"), (short_id(row.key), "strong")]
        dialog = Writing(heading, about, "what was good or bad about it", "send")
        self.reef.push_screen(dialog, lambda text: self._rate(None, text, row) if text else None)

    def _rated(self) -> Row | None:
        row = self.current
        if row is None:
            self.reef.say("no call under the cursor to rate", warn=True)
        return row

    def _rate(self, score: float | None, note: str, row: Row | None = None) -> None:
        rated = row or self._rated()
        if rated is None:
            return
        # The id makes a retry of the same press safe: the daemon stores one report.
        body: Json = {"references": [rated.key], "agent_record_id": new_id(), "feedback": note}
        word = "noted" if score is None else "rated good" if score == GOOD else "rated bad"
        first = cells.line(rated.data.get("preview") or "", 40)
        about = short_id(rated.key) + (f' "{first}"' if first else "")
        scenario = str(rated.data.get("scenario") or self.reef.scenario)

        def noted(reply: Json) -> None:
            self.reef.anywhere.rated(str(reply["agent_record_id"]), f"{word}: {about}")
            self.reload()

        def stored(done: Rated) -> None:
            if not done.changed:
                self.reef.say(f"{word} already: {about}")
                return
            before = figures.score(done.earlier["score"]) if done.earlier is not None else ""
            instead = f" instead of {before}" if before and done.earlier and done.earlier["score"] != score else ""
            self.reef.anywhere.rated(done.report, f"{word}{instead}: {about}", done.revision)
            self.reload()

        if score is None:
            self.act("rate", lambda: self.reef.source.call("report", scenario, body), noted)
        else:
            id = body["agent_record_id"]
            self.act("rate", lambda: self.reef.source.rate(scenario, rated.key, score, note, id), stored)
