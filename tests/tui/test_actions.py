"""One table: every action has a handler, a key that no other action of its place has, and a line in help."""

from __future__ import annotations

import pytest

from reef.errors import ConfigError
from reef.paths import Paths
from reef.tui import actions
from reef.tui.screens.anywhere import Anywhere, help_blocks
from reef.tui.screens.asks import Asks
from reef.tui.screens.now import Now
from reef.tui.screens.traces import Traces
from reef.tui.screens.versions import Versions
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, opened, press, screen

SCREENS = {"now": Now, "traces": Traces, "asks": Asks, "versions": Versions}


@pytest.mark.parametrize("place", SCREENS)
def test_every_action_of_a_place_has_a_handler(place: str) -> None:
    for action in actions.offered(place):
        assert hasattr(SCREENS[place], f"do_{action.id}") or hasattr(Anywhere, f"do_{action.id}"), action.id


def test_no_key_means_two_things_in_one_place() -> None:
    actions.check_keys({})


@pytest.mark.parametrize("place", SCREENS)
def test_help_names_every_action(place: str) -> None:
    text = "\n".join(line.text for block in help_blocks(place, {}) for line in block.lines())
    for action in actions.offered(place):
        assert action.help in text


def test_a_changed_key_must_name_an_action() -> None:
    with pytest.raises(ConfigError, match="no action 'rate_god'") as caught:
        actions.check_keys({"rate_god": "g"})
    assert caught.value.hint == "did you mean 'rate_good'?"


def test_a_changed_key_may_not_take_another_actions_key() -> None:
    with pytest.raises(ConfigError, match="'j' would be both"):
        actions.check_keys({"rate_good": "j"})


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="a key is needed"):
        actions.check_keys({"rate_good": " "})


async def test_a_changed_key_works_and_is_shown(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, keys={"rate_good": "plus,t", "help": "f2"}) as (app, pilot):
        assert "f2 help" in screen(app)
        await press(pilot, "t")
        assert busy.reports[-1]["score"] == 1.0
        await press(pilot, "f2")
        await expect(pilot, "rate the call: good")
        assert "+ t" in screen(app)


async def test_a_key_can_be_written_as_its_character(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, keys={"rate_bad": "!"}) as (app, pilot):
        assert "! bad" in screen(app)
        await press(pilot, "!")
        assert busy.reports[-1]["score"] == 0.0


async def test_the_palette_finds_an_action_by_words_and_does_it(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "ctrl+p")
        await press(pilot, *"call good", "enter")
        assert busy.reports[-1]["score"] == 1.0
        assert len(app.screen_stack) == 1


async def test_the_palette_offers_what_has_no_key(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        assert app.theme == "reef-dark"
        await press(pilot, "ctrl+p", *"dark and light", "enter")
        assert app.theme == "reef-light"
