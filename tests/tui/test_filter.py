"""The filter: what is typed narrows the list, is seen whole, is never an action, and enter gives the keys back."""

from __future__ import annotations

import pytest

from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, opened, press, screen


async def test_the_filter_narrows_counts_and_is_cleared_by_esc(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "slash", *"flaky")
        shown = await expect(pilot, "1 of 8")
        assert "write release" not in shown and " /flaky " in shown
        await press(pilot, "enter", "r")
        assert '"role": "system"' in await expect(pilot, "raw request"), "after enter a letter is an action again"
        assert " /flaky " in screen(app)
        await press(pilot, "escape")
        shown = await expect(pilot, "8 calls")
        assert "write release" in shown
        await press(pilot, "slash", *"zzz")
        await expect(pilot, 'nothing matches "zzz"')


@pytest.mark.parametrize(
    ("place", "typed", "left", "gone"),
    (("asks", "files outside", "1 of 5", "answer at length"), ("versions", "notes", "1 of 7", "run the tests")),
)
async def test_asks_and_versions_are_filtered_as_calls_are(
    paths: Paths, busy: DaemonFake, place: str, typed: str, left: str, gone: str
) -> None:
    async with opened(paths, place) as (app, pilot):
        assert gone in screen(app)
        await press(pilot, "slash", *typed)
        shown = await expect(pilot, left)
        assert gone not in shown and f" /{typed} " in shown
        await press(pilot, "enter", "escape")
        await expect(pilot, gone)


async def test_letters_in_the_filter_are_text_and_not_actions(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "slash", *"q+p12a")
        assert app.is_running and app.current_mode == "traces" and not busy.reports[1:]
        await expect(pilot, 'nothing matches "q+p12a"')
