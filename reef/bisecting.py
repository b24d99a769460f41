"""Finding the version that broke things: which version is asked about next, and what the answers say.

Between a good version and a later bad one each answer halves the suspects. The answers are kept in a file of the
person's state, so that a search can go on after days; nothing is installed and nothing is decided here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from reef.errors import Conflict, Failed, InvalidInput, NotFound
from reef.ids import scenario_name, spans
from reef.paths import Paths, write_atomic

Answer = Literal["good", "bad", "skip"]
Rows = Sequence[dict[str, Any]]
ANSWERS: tuple[Answer, ...] = ("good", "bad", "skip")


@dataclass
class Bisection:
    """One search over the published versions of a scenario."""

    scenario: str
    good: int
    bad: int
    answers: dict[int, Answer] = field(default_factory=dict)

    def suspects(self, rows: Rows) -> list[int]:
        """The versions that may be the first bad one, oldest first; the last of them is known to be bad."""
        return [number for number in _published(rows) if self._low < number <= self._high]

    def next(self, rows: Rows) -> int | None:
        """The version to ask about; None when one is found, or when all that is left was skipped."""
        left = self.suspects(rows)
        middle = len(left) // 2 - 1
        open_ones = [place for place in range(len(left) - 1) if self.answers.get(left[place]) != "skip"]
        return left[min(open_ones, key=lambda place: abs(place - middle))] if open_ones else None

    def left(self, rows: Rows) -> int:
        """How many answers are needed at most, if none is a skip."""
        return math.ceil(math.log2(max(1, len(self.suspects(rows)))))

    def answer(self, rows: Rows, number: int, answer: Answer) -> None:
        """Take an answer, and those that follow from it. Raises InvalidInput for a version that is not in question."""
        left = self.suspects(rows)
        if number not in left[:-1]:
            raise InvalidInput(
                f"v{number} is not in question (in question: {spans('v', left[:-1]) or 'none'})",
                f"reef versions bisect status -s {self.scenario}",
            )
        self.answers[number] = answer
        self.follow(rows)

    def follow(self, rows: Rows) -> None:
        """Take the answers that follow from those there are: equal content is equally good."""
        contents = {int(row["version"]): row.get("content_id") for row in rows}
        known: dict[Any, Answer] = {contents[self.good]: "good", contents[self.bad]: "bad"}
        known |= {contents[asked]: said for asked, said in self.answers.items() if said != "skip"}
        while (asked := self.next(rows)) is not None and contents[asked] in known:
            self.answers[asked] = known[contents[asked]]

    @property
    def _low(self) -> int:
        return max([self.good, *(number for number, said in self.answers.items() if said == "good")])

    @property
    def _high(self) -> int:
        return min([self.bad, *(number for number, said in self.answers.items() if said == "bad")])


def begin(rows: Rows, scenario: str, good: int | None, bad: int | None) -> Bisection:
    """A new search; without numbers between the base, which is taken for good, and the head.

    Raises InvalidInput, NotFound.
    """
    there = _published(rows)
    if not there:
        raise NotFound(f"scenario {scenario} has no version yet", f"reef scenarios create {scenario}")
    if len(there) == 1:
        raise InvalidInput(
            f"scenario {scenario} has one version, and a search needs a good and a bad one",
            f"reef versions list -s {scenario}",
        )
    low, high = good or there[0], bad or there[-1]
    for number in (low, high):
        if number not in there:
            raise InvalidInput(
                f"v{number} was not published (published: {spans('v', there)})", f"reef versions list -s {scenario}"
            )
    if low >= high:
        raise InvalidInput(
            f"the good version must be before the bad one, and v{low} is not before v{high}",
            f"reef versions bisect start --good v{there[0]} --bad v{there[-1]} -s {scenario}",
        )
    search = Bisection(scenario, low, high)
    search.follow(rows)
    return search


def _published(rows: Rows) -> list[int]:
    return sorted(int(row["version"]) for row in rows if row.get("state") == "published")


# The file


def load(paths: Paths, scenario: str) -> Bisection | None:
    """The search of a scenario; None when there is none. Raises Failed for a file that cannot be read."""
    place = _place(paths, scenario)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        answers = {int(number): said for number, said in found["answers"].items() if said in ANSWERS}
        return Bisection(scenario, int(found["good"]), int(found["bad"]), answers)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError):
        raise Failed(f"{place} cannot be read", f"reef versions bisect reset -s {scenario}") from None


def save(paths: Paths, search: Bisection) -> None:
    """Keep a search."""
    facts = {"good": search.good, "bad": search.bad, "answers": search.answers}
    write_atomic(_place(paths, search.scenario), (json.dumps(facts, indent=2) + "\n").encode())


def drop(paths: Paths, scenario: str) -> bool:
    """Forget the search of a scenario. Returns whether there was one."""
    place = _place(paths, scenario)
    there = place.is_file()
    place.unlink(missing_ok=True)
    return there


def running(paths: Paths, rows: Rows, scenario: str) -> Bisection:
    """The search of a scenario. Raises NotFound with the command that starts one, Failed when it is of other versions.

    The file outlives the versions where the home is restored from a backup.
    """
    found = load(paths, scenario)
    if found is None:
        raise NotFound(f"no bisection of scenario {scenario} is running", f"reef versions bisect start -s {scenario}")
    return fits(found, rows)


def fits(search: Bisection, rows: Rows) -> Bisection:
    """The same search. Raises Failed when the scenario has no versions between which it could go on."""
    if not {search.good, search.bad} <= set(_published(rows)) or not search.suspects(rows):
        raise Failed(
            f"the bisection between v{search.good} and v{search.bad} does not fit the versions of {search.scenario}",
            f"reef versions bisect reset -s {search.scenario}",
        )
    return search


def refuse_running(search: Bisection | None, rows: Rows) -> None:
    """Raises Conflict when a search has not come to its end."""
    if search is not None and search.next(rows) is not None:
        raise Conflict(
            f"a bisection of scenario {search.scenario} between v{search.good} and v{search.bad} is running",
            f"reef versions bisect status -s {search.scenario}, or: reef versions bisect reset -s {search.scenario}",
        )


def _place(paths: Paths, scenario: str) -> Path:
    return paths.state / "bisect" / f"{scenario_name(scenario)}.json"
