"""Against the real daemon: a call, a rating, an ask, its step and the versions, all seen and done with keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reef.client import Client, wait_stopped
from reef.paths import Paths, write_atomic
from tests.http.running import Home, start_upstream
from tests.tui.looking import opened, press, screen, until


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A real daemon with the scripted model behind it."""
    upstream = start_upstream(tmp_path)
    found = Home(tmp_path, upstream.url)
    try:
        yield found.start(["recipe.implementation", "reefine"])
    finally:
        found.close()
        upstream.process.terminate()
        upstream.process.wait(10)


def call(home: Home, text: str) -> str:
    with Client.connect(home.paths, start=False) as client:
        body = {"model": "fake-model", "messages": [{"role": "user", "content": text}]}
        receipt = client.chat("default", body)[1]
    assert receipt is not None
    return receipt


async def test_a_call_is_seen_rated_and_the_rating_is_stored_as_the_persons(home: Home) -> None:
    receipt = call(home, "hello [/foo] \x1b]52;c;eA\x07")
    async with opened(home.paths) as (_, pilot):
        await until(pilot, "hello [/foo] ␛]52")
        call(home, "a second one")
        await until(pilot, "a second one")
        await press(pilot, "G", "plus")
        await until(pilot, "rated good")
        with Client.connect(home.paths, start=False) as client:
            report = client.record(receipt)["reports"][0]
            assert report["score"] == 1.0 and report["source"] == "person"
            await press(pilot, "z")
            await until(pilot, "taken back")
            assert client.record(receipt)["score"] is None


async def test_a_stream_is_followed_while_it_comes(home: Home) -> None:
    body = {"model": "fake-model", "stream": True, "messages": [{"role": "user", "content": "[[paced 60 100ms]] go"}]}
    async with opened(home.paths) as (_, pilot):
        reading = threading.Thread(target=httpx.post, args=(f"{home.url}/v1/chat/completions",), kwargs={"json": body})
        reading.start()
        await until(pilot, "… running")
        shown = await until(pilot, "word5 ")
        assert "… still answering" in shown and "word59" not in shown
        reading.join()
        shown = await until(pilot, "word59")
        assert "… running" not in await until(pilot, "first byte")


async def test_u_starts_the_daemon_and_the_place_comes_alive(tmp_path: Path, paths: Paths) -> None:
    upstream = start_upstream(tmp_path)
    settings = f"reef: {{port: 0}}\ninference: {{upstream-url: '{upstream.url}', upstream-model: fake-model}}\n"
    write_atomic(paths.config_file, settings.encode())
    try:
        async with opened(paths) as (_, pilot):
            await until(pilot, "○ down")
            await press(pilot, "u")
            await until(pilot, "● up", seconds=30)
            await until(pilot, "no calls yet")
    finally:
        with Client.connect(paths, start=False) as client:
            client.stop(now=True)
            assert wait_stopped(client.discovery, paths, 20)
        upstream.process.terminate()
        upstream.process.wait(10)


async def test_an_ask_is_filed_followed_and_cancelled_and_its_step_keeps_a_row(home: Home) -> None:
    async with opened(home.paths, "asks") as (_, pilot):
        await until(pilot, "no asks yet")
        await press(pilot, "a", *"be brief [[slow 20s]]", "ctrl+s")
        await until(pilot, "… running")
        await until(pilot, "ACTIVITY")
        await press(pilot, "x", "enter")
        await until(pilot, "· cancelled", seconds=20)
        await press(pilot, "5")
        shown = await until(pilot, "· s1")
        assert "● served" in shown and "cancelled" in shown


async def test_a_refused_ask_shows_the_daemons_words(home: Home) -> None:
    async with opened(home.paths, "asks") as (app, pilot):
        await press(pilot, "a", *("sk-" + "a" * 24), "ctrl+s")
        await until(pilot, "credential")
        assert "a" * 24 not in screen(app)
