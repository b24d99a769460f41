"""An upstream engine: its address in every spelling, its key, its health."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from reef.engines.engine import EngineHealth
from reef.engines.proxies import route_to
from reef.engines.upstream import UpstreamEngine
from reef.errors import ConfigError, CredentialMissing, UpstreamFailed
from tests.fakes.openai_server import application


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[str]:
    runner = web.AppRunner(application(tmp_path / "log", "sk-right"), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("written", "called"),
    [
        ("http://h:9/v1", "http://h:9/v1/chat/completions"),
        ("http://h:9/v1/", "http://h:9/v1/chat/completions"),
        ("http://h:9", "http://h:9/v1/chat/completions"),
        (" http://h:9/ ", "http://h:9/v1/chat/completions"),
        ("http://h:9/v1/chat/completions", "http://h:9/v1/chat/completions"),
        ("http://h:9/v1/models", "http://h:9/v1/chat/completions"),
        ("http://h:9/v1/v1", "http://h:9/v1/chat/completions"),
        ("http://h:9//v1//", "http://h:9/v1/chat/completions"),
        ("http://h:9/gw/v1", "http://h:9/gw/v1/chat/completions"),
        ("http://h:9/gw", "http://h:9/gw/v1/chat/completions"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
        ("http://[::1]:9", "http://[::1]:9/v1/chat/completions"),
        ("http://h:9/v1?key=UP", "http://h:9/v1/chat/completions?key=UP"),
    ],
)
def test_every_spelling_of_a_base_address_reaches_one_path(written: str, called: str) -> None:
    assert UpstreamEngine(written).url("/chat/completions") == called


@pytest.mark.parametrize("written", ["h:9", "ftp://h/v1", "http://", "http://h:0", "http://h:abc", ""])
def test_what_is_no_address_is_refused_with_the_setting_named(written: str) -> None:
    with pytest.raises(ConfigError, match=r"inference\.upstream-url"):
        UpstreamEngine(written)


def test_a_clients_query_is_joined_with_the_address_own() -> None:
    assert UpstreamEngine("http://h/v1?key=UP").url("/models", "a=b") == "http://h/v1/models?key=UP&a=b"


def test_nothing_that_is_shown_holds_a_credential() -> None:
    engine = UpstreamEngine("http://user:pass@h:9/v1?key=UP789", "m", "sk-UP-456")
    shown = repr(engine.describe()) + engine.base_url
    assert not any(secret in shown for secret in ("UP789", "sk-UP", "pass", "user"))
    # The key that was set goes before a user name in the address; both would be two Authorization headers.
    assert "user" not in engine.url("/models") and engine.headers() == {"authorization": "Bearer sk-UP-456"}
    assert UpstreamEngine("http://user:pass@h:9").url("/models") == "http://user:pass@h:9/v1/models"


async def test_health_says_ready_refused_or_down(upstream: str) -> None:
    told: list[EngineHealth] = []
    engine = UpstreamEngine(upstream, None, "sk-wrong", told.append)
    assert await engine.probe() == ["fake-model"]
    assert (await engine.health()).state == "ready"
    gone = UpstreamEngine("http://127.0.0.1:9", None, None, told.append)
    health = await gone.health()
    assert health.state == "down" and "127.0.0.1:9" in health.detail
    assert gone.describe()["state"] == "down"
    assert [health.state for health in told] == ["down"]


async def test_a_server_that_is_not_there_is_said_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UpstreamFailed) as raised:
            await UpstreamEngine(url).probe()
    assert raised.value.message == f"the model server at {url}/v1 does not answer: connection refused"


async def test_a_named_key_that_is_not_set_is_said_and_not_worked_around() -> None:
    engine = UpstreamEngine("http://127.0.0.1:9", "m", None, None, "SOME_API_KEY")
    with pytest.raises(CredentialMissing, match="SOME_API_KEY is not set"):
        await engine.ready(1)
    assert (await engine.health()).hint == "export SOME_API_KEY=…"


def test_a_call_tells_the_engine_what_it_met() -> None:
    told: list[str] = []
    engine = UpstreamEngine("http://127.0.0.1:9", on_change=lambda health: told.append(health.state))
    for problem in (None, "refused", "refused", None, None):
        engine.observed(problem)
    assert told == ["down", "ready"]


@pytest.mark.parametrize("no_proxy", ["10.0.0.0/8, .corp.example,*,[::1],", "*", "", "h"])
def test_strange_proxy_variables_do_no_harm(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:8080")
    assert route_to("http://127.0.0.1:11434/v1").proxy is None
    assert route_to("http://localhost:1/v1").proxy is None
    assert route_to("http://h:9/v1").proxy == (None if no_proxy in ("*", "h") else "http://proxy:8080")


def test_a_socks_proxy_is_named_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://h:1")
    route = route_to("https://example.com/v1")
    assert route.proxy is None and "socks5" in route.note
    assert "socks5" in UpstreamEngine("https://example.com").describe()["detail"]
