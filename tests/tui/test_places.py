"""The places: what they show, how one moves in them and between them."""

from __future__ import annotations

import re

import pytest

from reef.ids import utc_now
from reef.paths import Paths
from reef.tui.screens.place import Place
from tests.fakes.daemon_fake import DaemonFake, ask_row
from tests.tui.looking import SMALL, USUAL, WIDE, expect, opened, press, screen, still


@pytest.mark.parametrize("size", (SMALL, USUAL, WIDE))
async def test_traces_show_the_recorded_calls(paths: Paths, busy: DaemonFake, size: tuple[int, int]) -> None:
    async with opened(paths, "traces", size) as (app, _):
        shown = screen(app)
        assert "2 Traces" in shown
        assert "● up" in shown
        assert "8 calls" in shown
        assert "why is the build" in shown
        assert "✗ failed" in shown
        assert "? help" in shown and "q quit" in shown


async def test_the_page_is_the_conversation_of_the_call_under_the_cursor(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "j")
        shown = await expect(pilot, "I will reproduce it first.")
        for part in ("you", "the parser test fails", "bash  pytest -x -k parser", "(38 lines, enter)", "exit 1"):
            assert part in shown, part
        assert "The fixture shared a clock" in shown
        assert '"reproduced first"' in shown and "→ in step 31" in shown
        assert "test_parser.py::test_3 PASSED" not in shown, "a long result is folded"
        assert "shared state or time" not in shown, "reasoning is folded"


async def test_enter_reads_on_and_unfolds_and_esc_goes_back_without_quitting(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "j")
        await expect(pilot, "I will reproduce it first.")
        await press(pilot, "enter")
        place = app.place
        assert place is not None and place.in_page
        for _ in range(30):
            block = place.page.current
            if block is not None and block.key.endswith("call0"):
                break
            await press(pilot, "j")
        await press(pilot, "enter")
        await expect(pilot, "test_parser.py::test_3 PASSED")
        await press(pilot, "escape")
        assert not place.in_page
        await press(pilot, "escape", "escape")
        assert app.is_running and app.place is place


async def test_r_shows_the_raw_request_then_the_raw_reply(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "j", "r")
        assert '"role": "system"' in await expect(pilot, "raw request")
        await press(pilot, "r")
        assert '"choices"' in await expect(pilot, "raw response")
        await press(pilot, "r")
        await expect(pilot, "I will reproduce it first.")


async def test_number_keys_go_to_the_places_that_are_there(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now") as (app, pilot):
        for key, place in (("2", "traces"), ("3", "asks"), ("5", "versions"), ("1", "now")):
            await press(pilot, key)
            assert isinstance(app.screen, Place) and app.screen.place == place
        for key in ("4", "6"):
            await press(pilot, key)
            assert app.screen.place == "now"
        assert "4 Training" not in screen(app) and "6 Health" not in screen(app)


async def test_now_says_what_needs_the_person_and_opens_it(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now") as (app, pilot):
        shown = screen(app)
        for part in ("NEEDS YOU", "v15 pending", "SERVED", "coding", "v14", "ollama qwen3:8b", "pi 1.6.0"):
            assert part in shown, part
        await press(pilot, "tab", "j", "k", "enter")
        await expect(pilot, "reproduce-first  #23")
        assert app.current_mode == "versions"


async def test_a_live_call_in_now_opens_in_traces(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "now") as (app, pilot):
        await press(pilot, "j", "enter")
        await expect(pilot, "I will reproduce it first.")
        assert app.current_mode == "traces"


async def test_asks_show_state_in_words_and_the_activity_of_the_step(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "asks") as (app, pilot):
        shown = screen(app)
        for part in ("… queued", "… running", "▲ needs you", "✓ published", "· rejected", "→ v15", "price unknown"):
            assert part in shown, part
        await press(pilot, "j")
        await expect(pilot, "qwen3:8b wrote 1 skill, 1 rule")
        busy.activity.append({"at": None, "kind": "reach", "text": "pi ended with 0", "failed": False})
        busy.emit("step_activity", scenario="coding", step=32)
        await expect(pilot, "pi ended with 0")


async def test_versions_show_the_chain_with_the_attempts_between(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (app, pilot):
        lines = screen(app).split("\n")
        order = [line.split()[1 if "▸" in line else 0] for line in lines[4:11]]
        assert order == ["v15", "v14", "v13", "·", "·", "v12", "v11"]
        shown = screen(app)
        for part in ("▲ needs you", "● served", "5 versions · 2 attempts without one", "head v14"):
            assert part in shown, part
        for part in ("harness/rules/bugs.md", "notify.ts", "code", "not tested: tasks", "GATE", "▲ v15"[2:]):
            assert part in shown, part
        await press(pilot, "j", "j", "j", "j")
        shown = await expect(pilot, "the rule was already in pi's request")
        assert "+ Answer at length." in shown


async def test_changed_words_are_marked_in_a_difference(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (app, pilot):
        await still(pilot)
        roles = [(text, role) for line in app.place.page.blocks for found in line.lines() for text, role in found.spans]
        assert ("the", "removed-word") in roles and ("all", "added-word") in roles


async def test_d_compares_with_another_version(paths: Paths, busy: DaemonFake) -> None:
    busy.differences["v12", "v15"] = [{"path": "harness/rules/new.md", "status": "added", "hunks": "+brand new\n"}]
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "d", *"v12", "enter")
        shown = await expect(pilot, "compared with v12")
        assert "+ brand new" in shown


async def test_empty_lists_say_what_fills_them(paths: Paths, fake: DaemonFake) -> None:
    async with opened(paths, "now", USUAL) as (_, pilot):
        for key, words in (("2", "no calls yet"), ("3", 'reef ask "…"'), ("5", "no versions yet")):
            await press(pilot, key)
            await expect(pilot, words)


async def test_the_scenario_chooser_narrows_what_is_listed(paths: Paths, busy: DaemonFake) -> None:
    busy.add_record("from another place", quiet=True, scenario="papers")
    async with opened(paths) as (app, pilot):
        assert "all scenarios" in screen(app) and "from another place" in screen(app)
        await press(pilot, "s", *"papers", "enter")
        shown = await expect(pilot, "1 call · papers")
        assert "why is the build" not in shown
        await press(pilot, "s", *"all", "enter")
        await expect(pilot, "why is the build")


@pytest.mark.parametrize("size", (USUAL, WIDE))
async def test_the_header_says_scenario_head_engine_and_state(
    paths: Paths, busy: DaemonFake, size: tuple[int, int]
) -> None:
    for name, model in (("ollama", "qwen3:8b"), ("embedded", "SmolLM2-135M-Instruct")):
        busy.engine = {"name": name, "model": model, "state": "ready"}
        async with opened(paths, "traces", size) as (app, _):
            header = screen(app).split("\n")[0]
            for part in ("2 Traces", "5 Versions", "coding · v14 · ", model[:8], " · ● up"):
                assert part in header, part


async def test_asks_can_be_told_apart_at_80_columns(paths: Paths, busy: DaemonFake) -> None:
    busy.asks.append(ask_row(25, "cite every paper", scenario="papers", created_at=utc_now()))
    async with opened(paths, "asks", USUAL) as (app, pilot):
        assert re.search(r"▸  #25  papers    …  cite every p", screen(app))
        assert re.search(r"   #25  coding    …  say which fi", screen(app))
        await press(pilot, "s", *"coding", "enter")
        await expect(pilot, "say which files you rea")


async def test_the_first_scenario_is_one_with_calls(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, _):
        assert app.scenario == "coding"


async def test_narrow_shows_one_column_and_enter_turns_the_page(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "traces", SMALL) as (app, pilot):
        await press(pilot, "j")
        assert "I will reproduce it first." not in screen(app)
        await press(pilot, "enter")
        shown = await expect(pilot, "I will reproduce it first.")
        assert "write release notes" not in shown
        await press(pilot, "escape")
        assert "write release notes" in screen(app)
