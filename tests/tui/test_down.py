"""The daemon is down, goes down, comes back, or is another version: each a state with a way out, none a traceback."""

from __future__ import annotations

import json

from reef.paths import Paths, write_atomic
from reef.records import rows
from reef.records.schema import open_store
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import PLACES, USUAL, expect, opened, press, screen


async def test_without_daemon_and_store_every_place_says_what_to_do(paths: Paths) -> None:
    async with opened(paths, "now", USUAL) as (app, pilot):
        for key in PLACES.values():
            await press(pilot, key)
            shown = screen(app)
            assert "○ down" in shown and "u starts it" in shown
            await press(pilot, "j", "enter", "plus", "escape")
            assert app.is_running


async def test_asks_steps_and_versions_are_read_from_the_file_while_it_is_down(paths: Paths) -> None:
    store = open_store(paths.database)
    rows.add_scenario(store, "default", recipe="basic", adapter="pi", state="ready")
    release = {"release_id": "a" * 40, "content_id": "b" * 40}
    rows.add_version(
        store, "default", number=1, operation="base", state="published", summary="the base [/b]", **release
    )
    rows.add_ask(store, "default", id="c" * 32, text="be brief [/foo]", content_hash=b"0" * 32)
    store.close()
    async with opened(paths, "asks") as (_, pilot):
        await expect(pilot, "be brief [/foo]")
        await press(pilot, "5")
        await expect(pilot, "the base [/b]")
        await expect(pilot, "the difference needs the daemon")


async def test_a_daemon_that_goes_and_comes_back_is_seen(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        busy.stop()
        await expect(pilot, "○ down")
        assert "not following" in screen(app)
        busy.add_record("made meanwhile", scenario="coding")
        busy.start()
        await expect(pilot, "● up")
        await expect(pilot, "made meanwhile")


async def test_a_decision_while_it_is_down_is_an_error_with_a_hint(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        busy.stop()
        await expect(pilot, "○ down")
        await press(pilot, "a", *"be brief", "ctrl+s")
        await expect(pilot, "hint: reef up")


async def test_a_rating_while_it_is_down_is_told_to_have_failed(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        busy.stop()
        await expect(pilot, "○ down")
        await press(pilot, "plus")
        await expect(pilot, "hint: reef up", seconds=3)


async def test_a_daemon_of_another_version_is_named_with_the_way_out(paths: Paths, busy: DaemonFake) -> None:
    found = json.loads(paths.discovery.read_bytes()) | {"version": "9.9.9"}
    write_atomic(paths.discovery, json.dumps(found).encode())
    async with opened(paths) as (_, pilot):
        await expect(pilot, "✗ other version")
        await expect(pilot, "reef down && reef up")
