"""Text of agents and models in every place, dialog, toast and placeholder: shown, never obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.paths import Paths
from reef.tui.app import ReefApp
from tests.fakes.daemon_fake import DaemonFake, ask_row, step_row, version_row
from tests.tui.looking import PLACES, USUAL, expect, opened, press, screen, segments, still

EVIL = (
    "[/foo][bold red]x[@click=app.quit]y[/] [data: /messages?id=bb-609b-]",
    "\x1b]52;c;cm0gLXJm\x1b\\\x1b]0;title\x07\x1b[2J\x9b31m",
    "‮txt.exe⁦ ⚠️ 👨‍👩‍👧 é 北京\u2028line\tx",
)
FORBIDDEN = "\x1b\x07\x9b\u202e\u2066\u2028\u200d\ufe0f"
MARKUP = "[/foo]"


def clean(app: Any) -> str:
    """The screen, which must hold nothing that a terminal would act on; lines must have the screen's width."""
    shown = screen(app)
    assert not any(character in shown for character in FORBIDDEN)
    width = app.size.width
    assert all(sum(segment.cell_length for segment in line) == width for line in segments(app))
    return shown


@pytest.fixture
def hostile(fake: DaemonFake) -> DaemonFake:
    """A daemon whose every text is hostile."""
    text = " ".join(EVIL)
    call = {"id": text, "function": {"name": text, "arguments": json.dumps({text: text})}}
    messages = [
        {"role": "system", "content": text},
        {"role": text, "content": text},
        {"role": "user", "content": [{"text": text}, {"type": "image_url", "image_url": {"url": text}}]},
        {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": text, "content": text},
    ]
    tools = [{"function": {"name": text}}]
    reply = {"choices": [{"message": {"role": text, "content": text}, "finish_reason": text}]}
    for place, evil in enumerate((text, *EVIL)):
        fields = {"model": evil, "adapter": evil, "error": evil, "state": ("failed", evil)[place % 2]}
        row = fake.add_record(evil, quiet=True, **fields)
        fake.bodies[row["agent_record_id"]] = (
            json.dumps({"messages": messages, "tools": tools}).encode(),
            json.dumps(reply).encode(),
        )
    receipt = fake.records[-1]["agent_record_id"]
    report = {"id": "a" * 32, "source": text, "feedback": text, "references": [receipt], "consumed_by": text}
    said = [{"number": number, "score": text, "feedback": text, "undone_at": None} for number in range(3)]
    fake.reports.append(report | {"score": 1, "created_at": text, "revisions": said, "scope": text})
    fake.engine = {"name": text, "model": text, "state": text, "detail": text}
    fake.asks = [ask_row(1, text, state="failed", reason=text), ask_row(2, text, state=text), ask_row(3, text)]
    fake.activity = [{"at": text, "kind": text, "text": text, "failed": True}]
    groups = [{"name": text, "status": status, "detail": text, "seconds": 1} for status in ("fail", "pass", text)]
    groups[0]["checks"] = [{"entry": text, "what": text, "status": "fail", "detail": text}]
    evaluation = {"policy": text, "groups": groups}
    fake.versions = [
        version_row(1, text, operation=text, current=True, components=[text]),
        version_row(2, text, pending=True, evaluation=evaluation, requires=[text], asks=[{"number": 1, "text": text}]),
    ]
    changed = [{"path": text, "status": text, "hunks": f"@@ {text}\n-{text} a\n+{text} b\n {text}"}]
    fake.differences["v1", "v2"] = changed
    fake.files[1] = {text: text}
    mutation = {"op": text, "kind": text, "id": text, "config": {"text": text}}
    fake.steps = [
        step_row(5, "failed", summary=text, reason=text, notes=[text], evaluation=evaluation, mutations=[mutation])
    ]
    fake.progress = [{"progress": text}]
    return fake


@pytest.mark.parametrize("size", ((120, 40), USUAL, (60, 15)))
async def test_every_place_shows_hostile_text_as_text(paths: Paths, hostile: DaemonFake, size: tuple[int, int]) -> None:
    async with opened(paths, "now", size) as (app, pilot):
        for place, key in PLACES.items():
            await press(pilot, key)
            assert app.current_mode == place
            clean(app)
            for keys in (("j",), ("j",), ("enter",), ("enter", "j", "enter"), ("G",), ("escape",)):
                await press(pilot, *keys)
                clean(app)


async def test_raw_bodies_show_hostile_text_as_text(paths: Paths, hostile: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, "r")
        assert MARKUP in clean(app)
        await press(pilot, "r")
        clean(app)


async def test_dialogs_and_toasts_show_hostile_text_as_text(paths: Paths, hostile: DaemonFake) -> None:
    async with opened(paths, "versions") as (app, pilot):
        app.say(" ".join(EVIL))
        await still(pilot)
        assert "bb-609b-]" in clean(app)
        await press(pilot, "i")
        assert MARKUP in clean(app)
        await press(pilot, "enter")
        await expect(pilot, "installed v2")
        clean(app)
        await press(pilot, "d")
        clean(app)
        await press(pilot, "escape", "3", "x")
        assert MARKUP in clean(app)


async def test_a_note_on_a_hostile_call_is_safe(paths: Paths, hostile: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        await press(pilot, *"jjjn")
        assert MARKUP in clean(app)


async def test_a_refusal_with_hostile_text_is_safe(paths: Paths, hostile: DaemonFake) -> None:
    text = " ".join(EVIL)
    hostile.refusals["/reef/records"] = (400, {"code": "invalid", "message": text, "hint": text})
    async with opened(paths) as (app, pilot):
        assert MARKUP in clean(app)
        await press(pilot, "plus")
        clean(app)


async def test_an_error_page_is_safe(paths: Paths, hostile: DaemonFake) -> None:
    async with opened(paths) as (app, pilot):
        app.show_error(ValueError(" ".join(EVIL)))
        await still(pilot)
        assert "reef tui made a mistake" in clean(app)


async def test_a_placeholder_is_shown_as_it_is(paths: Paths, hostile: DaemonFake) -> None:
    from reef.tui.screens.dialogs import Writing

    async with opened(paths) as (app, pilot):
        app.push_screen(Writing([(EVIL[0], "strong")], EVIL[1], " ".join(EVIL), "send"))
        await still(pilot)
        assert "[/foo][bold red]x" in clean(app)


async def test_pasted_control_characters_are_made_visible(paths: Paths, hostile: DaemonFake) -> None:
    from textual import events

    async with opened(paths) as (app, pilot):
        for keys, found in ((("a",), "PlainArea"), (("escape", "slash"), "#filter")):
            await press(pilot, *keys)
            app.screen.query_one(found).post_message(events.Paste(EVIL[1]))
            await still(pilot)
            assert "␛]52;c" in clean(app)


async def test_hostile_text_is_copied_as_it_is_stored(paths: Paths, hostile: DaemonFake) -> None:
    async with opened(paths, "asks") as (app, pilot):
        await press(pilot, "enter", "y")
        assert isinstance(app, ReefApp)
        copied = app.clipboard or (paths.state / "copied" / "asks.txt").read_text()
        assert copied == " ".join(EVIL)
