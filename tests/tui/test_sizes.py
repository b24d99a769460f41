"""Every size: no exception down to 1x1, a notice below the least size, everything still there after growing back."""

from __future__ import annotations

import pytest

from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, opened, press, resize, screen, still

STORM = ((149, 40), (80, 24), (70, 24), (40, 10), (20, 5), (1, 1), (2, 60), (200, 1), (120, 40))
SHORT_STORM = ((80, 24), (20, 5), (1, 1), (200, 1), (120, 40))
"""For dialogs, which stand over a place that has seen the whole storm."""
DIALOGS = {"now": ("question_mark",), "traces": ("n", "slash"), "asks": ("x",), "versions": ("p", "d")}


@pytest.mark.parametrize("place", DIALOGS)
async def test_a_storm_of_sizes_breaks_nothing(paths: Paths, busy: DaemonFake, place: str) -> None:
    async with opened(paths, place) as (app, pilot):
        for dialog in ("", *DIALOGS[place]):
            if dialog:
                await press(pilot, dialog)
            for size in SHORT_STORM if dialog else STORM:
                await resize(pilot, *size)
                screen(app)
            await press(pilot, "escape")
        assert app.is_running and len(app.screen_stack) == 1


async def test_below_the_least_size_one_line_says_so(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        for size in ((59, 24), (80, 14), (30, 3)):
            await resize(pilot, *size)
            await still(pilot)
            lines = [line for line in screen(app).split("\n") if line.strip()]
            assert len(lines) == 1 and "reef needs 60x15"[: size[0] - 1] in lines[0], size


async def test_cursor_and_typed_text_are_there_after_growing_back(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, *"jjj")
        row = app.place.current if app.place else None
        await press(pilot, "a", *"half a sentence")
        for size in ((20, 5), (1, 1), (120, 40)):
            await resize(pilot, *size)
        await expect(pilot, "half a sentence")
        await press(pilot, "escape")
        assert app.place is not None and app.place.current == row


@pytest.mark.parametrize("size", ((1, 1), (3, 2), (60, 15)))
async def test_it_opens_at_the_smallest_sizes(paths: Paths, busy: DaemonFake, size: tuple[int, int]) -> None:
    async with opened(paths, "versions", size) as (app, pilot):
        await press(pilot, "j", "enter", "escape", "1", "2")
        assert app.is_running
