"""Following: rows come in by themselves, the cursor stays, pausing is seen, nothing repaints more than it must."""

from __future__ import annotations

from reef.paths import Paths
from reef.tui.live import Follower
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, expect_gone, opened, press, screen, still
from tests.tui.sample import ago


async def test_new_calls_appear_and_the_cursor_stays_on_its_row(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "j", "j")
        place = app.place
        assert place is not None and place.current is not None
        row = place.current.key
        busy.add_record("a brand new call", scenario="coding")
        await expect(pilot, "a brand new call")
        await expect(pilot, "9 calls")
        assert place.current.key == row


async def test_p_pauses_counts_and_catches_up(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        assert "following · p pauses" in screen(app)
        await press(pilot, "p")
        busy.add_record("first while paused", scenario="coding")
        busy.add_record("second while paused", scenario="coding")
        shown = await expect(pilot, "paused · 2 new")
        assert "while paused" not in shown
        await press(pilot, "p")
        shown = await expect(pilot, "second while paused")
        assert "following" in shown


async def test_a_call_that_settles_changes_its_row(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        assert "… running" in screen(app)
        busy.records[-1] |= {"state": "complete", "duration_ms": 1500}
        busy.emit("record_settled", record=busy.records[-1]["agent_record_id"])
        await expect(pilot, "1.5 s")
        await expect_gone(pilot, "… running")


async def test_a_place_behind_is_fetched_again_when_it_comes_to_the_front(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "3", "2")
        busy.asks[-1]["text"] = "another wording"
        busy.emit("ask_changed", ask=busy.asks[-1]["id"])
        await press(pilot, "3")
        await expect(pilot, "another wording")


async def test_many_events_are_one_fetch(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        before = sum(path == "/reef/records" for _, path, _ in busy.asked)
        for _ in range(300):
            busy.emit("record_settled", record="0" * 32)
        busy.add_record("the last of the burst", scenario="coding")
        await expect(pilot, "the last of the burst")
        fetched = sum(path == "/reef/records" for _, path, _ in busy.asked) - before
        assert 1 <= fetched <= 10


async def test_the_page_keeps_its_place_while_it_is_refreshed(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, size=(120, 16)) as (app, pilot):
        await press(pilot, "j")
        await expect(pilot, "parser test fails")
        await press(pilot, "enter", *"jjjjj")
        page = app.place.page if app.place else None
        assert page is not None and page.cursor == 5
        busy.records[-2]["score"] = 0.0
        busy.emit("report_stored", record=busy.records[-2]["agent_record_id"])
        await expect(pilot, "bad")
        await still(pilot)
        assert page.cursor == 5


async def test_relative_times_go_on_without_anything_happening(paths: Paths, busy: DaemonFake) -> None:
    busy.asks[-1]["created_at"] = busy.started_at = ago(seconds=58)
    async with opened(paths, "asks") as (_, pilot):
        await expect(pilot, " s ago")
        await expect(pilot, "asked 1 min ago")
        busy.started_at = ago(seconds=117)
        await press(pilot, "1", "f5")
        await expect(pilot, "● up 1 min")
        await expect(pilot, "● up 2 min")


def test_the_follower_survives_a_daemon_that_is_not_there(paths: Paths) -> None:
    from reef.tui.source import Source

    follower = Follower(Source(paths).events)
    follower._run_once()
    assert follower.lost is not None and follower.lost.hint == "reef up"
    assert follower.drain() == []


async def test_what_comes_back_while_the_app_ends_is_let_go(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        place = app.place
        assert place is not None and not app.leaving
        await place.query("*").remove()
        assert app.leaving
        app.background.submit("late", lambda: 1, lambda _: place.reload())
        busy.add_record("one more", scenario="coding")
        await still(pilot)
        app.take_events()
        place.refresh_bars()
