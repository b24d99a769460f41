"""What a person does: rates, asks, cancels, promotes, rolls back, installs; each said, each with its way back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual import events

from reef.fetching import travels
from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, opened, press, screen


def sent(fake: DaemonFake, end: str) -> list[dict[str, Any]]:
    """Bodies of the writing calls to paths that end so."""
    return [body for method, path, body in fake.asked if path.endswith(end) and method != "GET"]


async def test_plus_rates_and_says_how_to_take_it_back(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "j", "j", "j", "j", "j", "plus")
        shown = await expect(pilot, "rated good")
        assert "z takes it back" in shown
        assert busy.reports[-1]["references"] == [busy.records[2]["agent_record_id"]]
        await expect(pilot, "good")
        await press(pilot, "z")
        await expect(pilot, "taken back")
        assert len(busy.reports) == 1


async def test_minus_rates_bad_and_n_sends_a_note(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "minus")
        assert busy.reports[-1]["score"] == 0.0
        await press(pilot, "n", *"too long", "ctrl+s")
        assert busy.reports[-1]["feedback"] == "too long" and busy.reports[-1]["score"] is None


async def test_rating_a_rated_call_revises_the_rating_and_shows_how_often(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "traces") as (_, pilot):
        await press(pilot, "minus")
        await expect(pilot, "rated bad")
        before = len(busy.reports)
        await press(pilot, "plus")
        await expect(pilot, "rated good instead of bad")
        await expect(pilot, "revised once, first bad")
        assert len(busy.reports) == before and busy.reports[-1]["score"] == 1.0
        await press(pilot, "plus")
        await expect(pilot, "rated good already")
        await press(pilot, "z")
        await expect(pilot, "taken back")
        assert busy.reports[-1]["score"] == 0.0 and len(busy.reports) == before


async def test_nothing_to_take_back_is_said(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (_, pilot):
        await press(pilot, "z")
        await expect(pilot, "no rating to take back")


async def test_an_ask_is_written_and_queued_and_says_what_it_costs(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "asks") as (_, pilot):
        await press(pilot, "a", *"be brief", "ctrl+s")
        await expect(pilot, "price unknown")
        assert sent(busy, "/reef/train")[-1]["text"] == "be brief"
        await expect(pilot, "be brief")


async def test_a_refused_ask_shows_why_and_keeps_the_words(paths: Paths, busy: DaemonFake) -> None:
    error = {"code": "invalid", "message": "the ask holds a [credential]", "hint": "name it, do not paste it"}
    busy.refusals["/reef/train"] = (400, error)
    async with opened(paths, "asks") as (app, pilot):
        await press(pilot, "a", *"key sk", "ctrl+s")
        await expect(pilot, "the ask holds a [credential]")
        assert "hint: name it" in screen(app)
        await press(pilot, "a")
        assert "key sk" in screen(app)


async def test_an_empty_ask_is_not_sent(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "asks") as (_, pilot):
        await press(pilot, "a", "ctrl+s")
        await expect(pilot, "write a sentence first")
        assert not sent(busy, "/reef/train")


async def test_an_ask_is_cancelled_only_after_a_yes(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "asks") as (_, pilot):
        await press(pilot, "x", "escape")
        assert not sent(busy, "/cancel")
        await press(pilot, "x", "enter")
        await expect(pilot, "ask #25 cancelled")
        assert len(sent(busy, "/cancel")) == 1


async def test_a_settled_ask_cannot_be_cancelled(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "asks") as (_, pilot):
        await press(pilot, "G", "x")
        await expect(pilot, "only a queued or running ask")


async def test_promote_shows_the_change_and_names_the_head_it_saw(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "p")
        shown = await expect(pilot, "serve v15?")
        assert "read it before you say yes" in shown, "code-bearing files are pointed out"
        assert "v14 → v15" in shown and "harness/rules/bugs.md" in shown
        await press(pilot, "escape")
        assert not sent(busy, "/promote")
        await press(pilot, "p", "enter")
        await expect(pilot, "serves v15")
        assert sent(busy, "/promote") == [{"version": 15, "expected_head": 14}]


async def test_a_lost_race_shows_what_the_daemon_says(paths: Paths, busy: DaemonFake) -> None:
    error = {"code": "conflict", "message": "v16 is served, not v14 as expected", "hint": "reef versions list"}
    busy.refusals["/reef/scenarios/coding/promote"] = (409, error)
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "p", "enter")
        await expect(pilot, "v16 is served, not v14 as expected")


async def test_roll_back_says_which_version_it_makes_and_how_to_undo_it(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "j", "j", "R")
        await expect(pilot, "a new version v16 with the content of v13")
        await press(pilot, "enter")
        await expect(pilot, "R on v14 undoes it")
        assert sent(busy, "/rollback") == [{"version": 13, "expected_head": 14}]


async def test_only_a_pending_version_is_promoted_and_only_another_one_is_rolled_back_to(
    paths: Paths, busy: DaemonFake
) -> None:
    async with opened(paths, "versions") as (app, pilot):
        assert "p promote" in screen(app) and "R roll back" not in screen(app)
        await press(pilot, "R")
        await expect(pilot, "v15 is pending and was never served · p serves it")
        await press(pilot, "j", "j", "p")
        await expect(pilot, "v13 is not pending, and only a pending version is promoted · R rolls back to it")
        assert "R roll back" in screen(app) and "p promote" not in screen(app)
        assert len(app.screen_stack) == 1 and not sent(busy, "/promote")


async def test_needs_are_shown_before_the_yes_and_an_unmet_one_is_refused(
    paths: Paths, busy: DaemonFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy.versions[-1]["requires"] = [{"name": "FOO_TOKEN", "kind": "env"}]
    async with opened(paths, "versions") as (app, pilot):
        await expect(pilot, "needs  env FOO_TOKEN (not set)")
        await press(pilot, "i")
        await expect(pilot, "v15 needs the variable FOO_TOKEN, which is not set")
        assert len(app.screen_stack) == 1 and not sent(busy, "/reef/harness/install")
        monkeypatch.setenv("FOO_TOKEN", "x")
        await press(pilot, "i")
        assert "needs  env FOO_TOKEN" in await expect(pilot, "installing it is your yes")


async def test_an_ask_of_the_embedded_model_is_said_to_cost_nothing(paths: Paths, busy: DaemonFake) -> None:
    busy.engine = {"name": "embedded", "model": "SmolLM2-135M-Instruct", "state": "ready"}
    async with opened(paths, "asks") as (_, pilot):
        await expect(pilot, "costs nothing: the embedded model")
        await press(pilot, "a", *"be brief", "ctrl+s")
        assert "price unknown" not in await expect(pilot, "queued · costs nothing")


async def test_the_served_version_is_not_promoted_again(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "j", "p")
        await expect(pilot, "v14 is served already")


async def test_a_step_is_no_version_to_install(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "j", "j", "j", "i")
        await expect(pilot, "put the cursor on a version")


async def test_install_shows_progress_and_the_command_to_start(paths: Paths, busy: DaemonFake) -> None:
    busy.progress = [{"progress": "npm ci of pi 1.6.0", "seconds": 0.4}]
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "i")
        await expect(pilot, "installing it is your yes")
        await press(pilot, "enter")
        await expect(pilot, "installed v15 for pi · start it: reef-pi")
        body = sent(busy, "/reef/harness/install")[-1]
        assert all(travels(name) for name in body.pop("environment"))
        assert body == {"scenario": "coding", "adapter": "pi", "version": 15, "expected_head": 14}


async def test_q_quits_with_status_0(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, _):
        app.post_message(events.Key("q", "q"))
        async with asyncio.timeout(10):
            while app.return_value is None:
                await asyncio.sleep(0.01)
        assert app.return_value == 0
