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
from tests.tui.looking import expect, expect_gone, opened, press, screen


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A real daemon with the scripted model behind it; each test has a scenario of its own."""
    folder = tmp_path_factory.mktemp("home")
    upstream = start_upstream(folder)
    found = Home(folder, upstream.url)
    try:
        yield found.start(["recipe.implementation", "reefine"])
    finally:
        found.close()
        upstream.process.terminate()
        upstream.process.wait(10)


def scenario(home: Home, name: str) -> str:
    """A new scenario of the daemon, with its first version."""
    with Client.connect(home.paths, start=False) as client:
        client.create_scenario(name)
    return name


def call(home: Home, name: str, text: str) -> str:
    with Client.connect(home.paths, start=False) as client:
        body = {"model": "fake-model", "messages": [{"role": "user", "content": text}]}
        receipt = client.chat(name, body)[1]
    assert receipt is not None
    return receipt


async def test_a_call_is_seen_rated_and_the_rating_is_stored_as_the_persons(home: Home) -> None:
    name = scenario(home, "rated")
    receipt = call(home, name, "hello [/foo] \x1b]52;c;eA\x07")
    async with opened(home.paths, scenario=name) as (_, pilot):
        await expect(pilot, "hello [/foo] ␛]52")
        call(home, name, "a second one")
        await expect(pilot, "a second one")
        await press(pilot, "G", "plus")
        await expect(pilot, "rated good")
        with Client.connect(home.paths, start=False) as client:
            report = client.record(receipt)["reports"][0]
            assert report["score"] == 1.0 and report["source"] == "person"
            await press(pilot, "z")
            await expect(pilot, "taken back")
            assert client.record(receipt)["score"] is None


async def test_a_stream_is_followed_while_it_comes(home: Home) -> None:
    body = {"model": "fake-model", "stream": True, "messages": [{"role": "user", "content": "[[paced 60 50ms]] go"}]}
    sent = {"json": body, "headers": {"x-reef-scenario": scenario(home, "streamed")}}
    async with opened(home.paths, scenario="streamed") as (_, pilot):
        reading = threading.Thread(target=httpx.post, args=(f"{home.url}/v1/chat/completions",), kwargs=sent)
        reading.start()
        await expect(pilot, "… running")
        shown = await expect(pilot, "word5 ")
        assert "… still answering" in shown and "word59" not in shown
        reading.join()
        await expect(pilot, "word59")
        await expect_gone(pilot, "… running")


async def test_u_starts_the_daemon_and_the_place_comes_alive(tmp_path: Path, paths: Paths) -> None:
    upstream = start_upstream(tmp_path)
    settings = f"reef: {{port: 0}}\ninference: {{upstream-url: '{upstream.url}', upstream-model: fake-model}}\n"
    write_atomic(paths.config_file, settings.encode())
    try:
        async with opened(paths) as (_, pilot):
            await expect(pilot, "○ down")
            await press(pilot, "u")
            await expect(pilot, "● up", seconds=30)
            await expect(pilot, "no calls yet")
    finally:
        with Client.connect(paths, start=False) as client:
            client.stop(now=True)
            assert wait_stopped(client.discovery, paths, 20)
        upstream.process.terminate()
        upstream.process.wait(10)


async def test_an_ask_is_filed_followed_and_cancelled_and_its_step_keeps_a_row(home: Home) -> None:
    async with opened(home.paths, "asks", scenario=scenario(home, "asked")) as (_, pilot):
        await expect(pilot, "no asks yet")
        await press(pilot, "a", *"be brief [[slow 20s]]", "ctrl+s")
        await expect(pilot, "… running")
        await expect(pilot, "ACTIVITY")
        await press(pilot, "x", "enter")
        await expect(pilot, "· cancelled", seconds=20)
        await press(pilot, "5")
        shown = await expect(pilot, "· s1")
        assert "● served" in shown and "cancelled" in shown


async def test_a_refused_ask_shows_the_daemons_words(home: Home) -> None:
    async with opened(home.paths, "asks", scenario=scenario(home, "refused")) as (app, pilot):
        await press(pilot, "a", *("sk-" + "a" * 24), "ctrl+s")
        await expect(pilot, "credential")
        assert "a" * 24 not in screen(app)
