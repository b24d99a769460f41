"""Driving the app in a test: waiting until it is still, reading what is painted, taking its picture."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from rich.segment import Segment
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.pilot import Pilot

from reef.config import TuiSection
from reef.paths import Paths
from reef.tui.app import ReefApp

# The page of a row opens this long after the cursor came to rest: shorter here, so that `still` need not wait long.
PAGE_DELAY_S = 0.01
SMALL, USUAL, WIDE = (70, 24), (80, 24), (120, 40)


@asynccontextmanager
async def opened(
    paths: Paths, place: str = "traces", size: tuple[int, int] = WIDE, scenario: str | None = None, **options: Any
) -> AsyncIterator[tuple[ReefApp, Pilot[int]]]:
    """The app, opened at a place and still."""
    app = ReefApp(paths, scenario, TuiSection(**options), place)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reef.tui.screens.place.PAGE_DELAY_S", PAGE_DELAY_S)
        async with app.run_test(size=size, notifications=True) as pilot:
            await still(pilot)
            yield app, pilot


async def still(pilot: Pilot[int], seconds: float = 10) -> None:
    """Wait until no fetch runs, no page is about to open and everything is painted."""
    app = pilot.app
    assert isinstance(app, ReefApp)
    deadline = time.monotonic() + seconds
    quiet = 0
    while quiet < 3 and time.monotonic() < deadline:
        await pilot.pause(PAGE_DELAY_S)
        quiet = quiet + 1 if app.background.idle else 0


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys. Letters follow each other as a person types them; before and after other keys it is still.

    The pilot's own `press` waits until the process uses no CPU, which on a busy machine takes a second for each key.
    """
    for place, key in enumerate(keys):
        single = len(key) == 1
        pilot.app.post_message(events.Key(_character_to_key(key) if single else key, key if single else None))
        # The app hands a key on to the widget with the focus: two rounds until that has taken it.
        await pilot.pause(0)
        await pilot.pause(0)
        following = keys[place + 1] if place + 1 < len(keys) else ""
        if place == 0 or len(key) != 1 or len(following) != 1:
            await still(pilot)


PLACES = {"now": "1", "traces": "2", "asks": "3", "versions": "5"}
"""Each place and its key."""


async def resize(pilot: Pilot[int], columns: int, lines: int) -> None:
    """Give the terminal another size."""
    driver = pilot.app._driver
    assert isinstance(driver, HeadlessDriver)
    size = driver._size = Size(columns, lines)
    pilot.app.post_message(events.Resize(size, size))
    await pilot.pause(0)
    await pilot.pause(0.01)


async def expect(pilot: Pilot[int], text: str, seconds: float = 10) -> str:
    """Wait until `text` is painted and return the screen."""
    deadline = time.monotonic() + seconds
    while text not in (shown := screen(pilot.app)):
        assert time.monotonic() < deadline, f"{text!r} is not on the screen:\n{shown}"
        await pilot.pause(0.05)
    return shown


async def expect_gone(pilot: Pilot[int], text: str, seconds: float = 10) -> None:
    """Wait until `text` is no longer painted."""
    deadline = time.monotonic() + seconds
    while text in (shown := screen(pilot.app)):
        assert time.monotonic() < deadline, f"{text!r} is still on the screen:\n{shown}"
        await pilot.pause(0.05)


def segments(app: Any) -> list[list[Segment]]:
    """What the terminal gets, line by line."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return [_flat(line) for line in update.strips]


def _flat(part: Any) -> list[Segment]:
    if isinstance(part, Segment):
        return [part]
    return [segment for inner in part for segment in _flat(inner)]


def screen(app: Any) -> str:
    """The text on the screen."""
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in segments(app))


async def picture(
    paths: Paths, place: str = "versions", size: tuple[int, int] = (120, 34), keys: Sequence[str] = ()
) -> str:
    """The app as an SVG: what README and help show."""
    async with opened(paths, place, size) as (app, pilot):
        await press(pilot, *keys)
        return app.export_screenshot(title="reef")
