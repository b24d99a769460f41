"""Beside deciding: a version is kept installed, tried for a session, or looked for."""

from __future__ import annotations

from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake
from tests.tui.looking import expect, opened, press, screen
from tests.tui.test_deciding import sent


async def test_a_version_is_pinned_after_a_yes_and_let_go_of_with_the_same_key(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (app, pilot):
        await press(pilot, "j", "P")
        await expect(pilot, "v14 stays installed whatever is served")
        await press(pilot, "escape")
        assert not sent(busy, "/pin")
        await press(pilot, "P", "enter")
        await expect(pilot, "v14 is pinned · i installs it")
        assert sent(busy, "/pin") == [{"version": 14}]
        await expect(pilot, "pinned v14")
        await press(pilot, "P")
        await expect(pilot, "let go of v14?")
        await press(pilot, "enter")
        await expect(pilot, "unpinned")
        assert len(sent(busy, "/unpin")) == 1
        assert "pinned v14" not in screen(app)


async def test_where_the_terminal_cannot_be_given_away_the_command_is_named(paths: Paths, busy: DaemonFake) -> None:
    async with opened(paths, "versions") as (_, pilot):
        await press(pilot, "t")
        await expect(pilot, "type it in a shell: reef versions try v15 -s coding --adapter pi")
        await press(pilot, "b")
        await expect(pilot, "type it in a shell: reef versions bisect -s coding --adapter pi")
