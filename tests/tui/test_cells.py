"""Text as columns: nothing is sent to the terminal that is not text, and no cut splits a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from reef.tui import cells

HOSTILE = (
    "[/foo] [bold]x[/]",
    "\x1b]52;c;cm0gLXJm\x1b\\after",
    "\x1b[31mred\x1b[0m \x9b31m \x07\x08",
    "‮evil⁦txt⁩",
    "⚠️ hello",
    "✍️",
    "北京 is big",
    "é and a͟lot of marks",
    "👨‍👩‍👧‍👦 family",
    "👋🏽 tone",
    "שלום עולם",
    "tag\U000e0041\U000e0042 hidden​zero",
    "lone \ud800 surrogate",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_or_invisible_character_survives(text: str) -> None:
    found = cells.shown(text)
    assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 for c in found)
    assert not any(c in found for c in "\u202e\u2066\u2069\u200d\ufe0f\u200b\U000e0041\ud800")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("columns", range(1, 21))
def test_a_cut_fits_at_every_width_and_splits_no_cluster(text: str, columns: int) -> None:
    plain = cells.line(text)
    short = cells.cut(plain, columns)
    assert cell_len(short) <= columns
    assert cell_len(cells.fit(plain, columns)) == columns
    whole = [cluster for cluster, _ in cells.clusters(plain)]
    kept = [cluster for cluster, _ in cells.clusters(short.removesuffix("…"))]
    assert kept == whole[: len(kept)]


@given(st.text(max_size=200), st.integers(1, 30))
def test_wrapped_lines_fit_and_lose_no_visible_character(text: str, columns: int) -> None:
    plain = cells.shown(text).replace("\n", " ")
    lines = cells.wrap(plain, columns)
    assert all(cells.width(line) <= columns for line in lines)
    if columns >= 2:
        assert "".join("".join(lines).split()) == "".join(plain.split())


def test_wrapping_keeps_the_indentation_of_code() -> None:
    assert cells.wrap("    return one_long_name and another", 20) == [
        "    return",
        "    one_long_name",
        "    and another",
    ]
