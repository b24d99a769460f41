"""The look: ASCII twins, no colour on request, light and dark, no emoji; state is never said by colour alone."""

from __future__ import annotations

import re

import pytest

from reef.paths import Paths
from reef.tui.theme import SYMBOLS, drawn, first_theme, wants_ascii
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import PLACES, opened, picture, press, screen, segments


async def test_ascii_paints_only_ascii(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now", ascii=True) as (app, pilot):
        for place, key in PLACES.items():
            for keys in ((key,), ("j", "question_mark"), ("escape", "a"), ("escape",)):
                await press(pilot, *keys)
                assert app.current_mode == place and screen(app).isascii()


async def test_a_dumb_terminal_gets_ascii(paths: Paths, busy: DaemonFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    async with opened(paths) as (app, _):
        assert screen(app).isascii()


async def test_no_color_paints_no_colour(paths: Paths, busy: DaemonFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(paths, "now") as (app, pilot):
        for place, key in PLACES.items():
            await press(pilot, key)
            assert app.current_mode == place and "▸" in screen(app), "the cursor is seen without colour"
            await press(pilot, "j", "question_mark")
            styles = [segment.style for line in segments(app) for segment in line if segment.style]
            assert all(style.color is None and style.bgcolor is None for style in styles)
            await press(pilot, "escape")


async def test_light_and_dark_have_enough_contrast(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now") as (app, pilot):
        for theme in ("reef-dark", "reef-light"):
            app.theme = theme
            for place, key in PLACES.items():
                await press(pilot, key)
                assert app.current_mode == place
                styled = [segment for line in segments(app) for segment in line if segment.text.strip()]
                pairs = [(s.style.color, s.style.bgcolor) for s in styled if s.style]
                assert len(pairs) > 50
                for colour, back in pairs:
                    if colour and back:
                        assert _contrast(colour.get_truecolor(), back.get_truecolor()) > 1.35


def _contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_symbol_has_an_ascii_twin_of_the_same_width() -> None:
    for symbol, twin, words in SYMBOLS:
        assert len(twin) == 1 and twin.isascii() and words
        assert drawn(symbol, True) == twin and drawn(symbol, False) == symbol
    assert wants_ascii(False, {"TERM": "dumb"}) and wants_ascii(True, {}) and not wants_ascii(False, {"TERM": "xterm"})


def test_a_terminal_that_says_it_is_light_gets_the_light_theme() -> None:
    assert first_theme({"COLORFGBG": "0;15"}) == "reef-light"
    assert first_theme({"COLORFGBG": "15;0"}) == "reef-dark"
    assert first_theme({}) == "reef-dark"


async def test_a_picture_of_the_app_is_an_svg_with_its_text(paths: Paths, busy: DaemonFake) -> None:
    svg = await picture(paths, "versions", (120, 34))
    assert svg.startswith("<svg") and "reproduce-first" in re.sub(r"<[^>]+>", "", svg).replace("&#160;", " ")


async def test_the_chrome_has_no_emoji(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now") as (app, pilot):
        for place, key in PLACES.items():
            await press(pilot, key)
            assert app.current_mode == place
            assert not [c for c in screen(app) if ord(c) >= 0x1F000 or c == "\ufe0f"]
