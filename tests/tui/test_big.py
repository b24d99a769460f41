"""A hundred thousand records: the list opens at once, holds a window, and answers keys while records arrive."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import pytest

from reef.config import TuiSection
from reef.paths import Paths
from reef.tui.app import ReefApp
from reef.tui.widgets.window import KEPT, PAGE
from tests.fakes.daemon_fake import DaemonFake, record_row
from tests.tui.looking import WIDE, expect, opened, press, screen, still
from tests.tui.many import fill_store

MANY = 100_000
OPEN_S = 5.0
"""A few times the budget of an idle machine: the test is about growing with the store, which takes far longer."""
KEY_S = 0.15


class Timed(ReefApp):
    """Notes when something was painted."""

    painted_at = 0.0

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.painted_at = time.perf_counter()


@pytest.fixture
def many(fake: DaemonFake) -> DaemonFake:
    """A daemon with a hundred thousand records."""
    fake.records = [record_row(number, f"call number {number}") for number in range(1, MANY + 1)]
    return fake


async def test_the_first_rows_are_there_soon_and_only_a_window_is_fetched(paths: Paths, many: DaemonFake) -> None:
    started = time.perf_counter()
    async with opened(paths) as (app, pilot):
        await expect(pilot, "call number 100000")
        assert time.perf_counter() - started < OPEN_S
        assert "100,000 calls" in screen(app)
        assert app.place is not None and len(app.place.rows.window.rows) <= PAGE


async def test_the_ends_are_one_key_away_and_the_window_stays_bounded(paths: Paths, many: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "G")
        await expect(pilot, "call number 1 ")
        window = app.place.rows.window if app.place else None
        assert window is not None and len(window.rows) <= KEPT + PAGE
        assert "newer" in screen(app)
        await press(pilot, *["pageup"] * 12)
        assert window.current is not None and window.current.order > 300
        await press(pilot, "g")
        await expect(pilot, "call number 100000")
        assert app.place is not None and len(app.place.rows.window.rows) <= KEPT + PAGE


async def test_a_key_is_painted_soon_while_records_arrive(paths: Paths, many: DaemonFake) -> None:
    app = Timed(paths, place="traces", settings=TuiSection())
    async with app.run_test(size=WIDE) as pilot:
        await still(pilot)
        waits = []
        for _ in range(25):
            many.add_record("another call")
            await asyncio.sleep(0.02)
            pressed = time.perf_counter()
            app.simulate_key("j")
            while app.painted_at < pressed:
                await asyncio.sleep(0.001)
            waits.append(app.painted_at - pressed)
        await still(pilot)
        assert app.place is not None and app.place.rows.window.current is not None
        assert app.place.rows.window.current.key == f"{MANY - 25:032x}", "25 keys went 25 rows down"
        assert statistics.median(waits) < KEY_S


async def test_cells_of_a_hundred_lines_are_cut_to_one(paths: Paths, fake: DaemonFake) -> None:
    for _ in range(300):
        fake.add_record("\n".join(f"line {n} " + "x" * 400 for n in range(100)), quiet=True)
    async with opened(paths) as (app, pilot):
        assert "300 calls" in screen(app)
        await press(pilot, *"jjjjG")
        assert app.place is not None and app.place.current is not None and app.place.current.order == 1


async def test_the_store_itself_is_read_by_page_while_the_daemon_is_down(paths: Paths) -> None:
    await asyncio.to_thread(fill_store, paths, MANY)
    started = time.perf_counter()
    async with opened(paths) as (app, pilot):
        shown = await expect(pilot, "call number 100000")
        assert time.perf_counter() - started < OPEN_S
        assert "○ down" in shown and "100,000 calls" in shown
        await press(pilot, "G")
        await expect(pilot, "call number 1 ")
        await press(pilot, "slash", *"77777", "enter")
        await expect(pilot, "1 of 100,000")
        assert app.is_running
