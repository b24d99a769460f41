"""How things look: colours only where they are wanted, ASCII twins, times, sizes, columns that line up."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from reef.cli.look import OUT, Look, ago, size, span
from reef.ids import utc_now
from reef.text import width
from tests.cli.shell import on_terminal, reef


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.014, "14 ms"), (3.21, "3.2 s"), (41.9, "41 s"), (60, "1 min"), (7300, "2 h"), (200_000, "2 d"), (-1, "0 ms")],
)
def test_a_duration_is_shown_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(None, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (61_000_000, "61 MB"), (2.5e12, "2.5 TB")]
)
def test_a_size_has_its_unit(count: float | None, shown: str) -> None:
    assert size(count) == shown


def test_a_time_is_told_from_now() -> None:
    then = datetime.now(UTC) - timedelta(seconds=125)
    assert ago(then.isoformat()) == "2 min ago"
    assert ago(utc_now()) == "now"
    assert ago("\x1b[2Jnever") == "␛[2Jnever"


def test_columns_line_up_by_the_width_table() -> None:
    rows = [["北京", "1", "x"], ["e\u0301a", "22", "x"], ["plain", "333", "x"]]
    lines = OUT.table(["name", "n", "last"], rows, right=(1,))
    assert {width(line[: line.rindex("x")]) for line in lines[1:]} == {width("plain  333  ")}


def test_colour_takes_no_column_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["v2", OUT.paint("● head", "good"), "training"], ["v1", "superseded", "base"]]
    plain = OUT.table(["version", "state", "by"], rows)
    monkeypatch.setenv("FORCE_COLOR", "1")
    rows[0][1] = OUT.paint("● head", "good")
    painted = OUT.table(["version", "state", "by"], rows)
    assert painted[1] != plain[1]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted] == plain


def test_a_line_is_broken_between_words_below_its_first_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Look, "columns", 30)
    text = "engine     upstream fake · ready · speaks chat, responses"
    assert OUT.folded(text) == [
        "engine     upstream fake ·",
        "           ready · speaks",
        "           chat, responses",
    ]
    assert OUT.folded("short") == ["short"]


def test_a_table_is_cut_to_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Look, "columns", 40)
    monkeypatch.setattr(Look, "terminal", True)
    cells = ["v1", "12 min ago", "superseded by another", "a summary of the change that was made"]
    lines = OUT.table(["version", "when", "state", "what"], [cells])
    assert max(width(line) for line in lines) <= 40
    assert "a summary" in lines[1]


def test_an_empty_table_prints_nothing() -> None:
    assert OUT.table(["name"], []) == []


COMMANDS = (("--help",), ("config", "show"), ("nonsense",))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_colour_into_a_pipe_and_none_under_no_color(command: tuple[str, ...]) -> None:
    assert "\x1b" not in reef(*command).all
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(*command, env=env)[1]


def test_force_color_colours_a_pipe() -> None:
    assert "\x1b[2msetting" in reef("config", "show", env={"FORCE_COLOR": "1"}).out
    assert "\x1b" not in reef("config", "show", env={"FORCE_COLOR": "0"}).out


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    shown = reef("config", "show", env={"PYTHONIOENCODING": "ascii"})
    assert shown.status == 0
    assert shown.out.isascii()
    assert "–" in reef("config", "show").out
