"""What is found on this machine, what the person confirmed, and which engine that makes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from reef.config import InferenceSection, Settings
from reef.engines import discovery
from reef.engines.servers import KNOWN, Known, Server, find, listeners
from reef.errors import ConfigError, NotFound
from reef.paths import Paths

SHAPES: dict[str, dict[str, Any]] = {
    "ollama": {"/api/version": {"version": "0.20.1"}, "/api/tags": {"models": [{"name": "qwen3:4b"}]}},
    "llama.cpp": {"/health": {"status": "ok"}, "/v1/models": {"data": [{"id": "qwen3:4b", "owned_by": "llamacpp"}]}},
    "lm-studio": {
        "/api/v0/models": {"data": [{"id": "e", "type": "embeddings"}, {"id": "qwen3:4b", "type": "llm", "state": "x"}]}
    },
    "vllm": {"/version": {"version": "0.33.0"}, "/v1/models": {"data": [{"id": "qwen3:4b", "owned_by": "vllm"}]}},
    "sglang": {
        "/get_model_info": {"model_path": "p"},
        "/v1/models": {"data": [{"id": "qwen3:4b", "owned_by": "sglang"}]},
    },
}
Start = Callable[[dict[str, Any]], Any]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(shape)` runs a server that answers these paths and returns its port."""
    runners: list[web.AppRunner] = []

    async def run(shape: dict[str, Any]) -> int:
        async def answer(request: web.Request) -> web.Response:
            if request.path in shape:
                return web.json_response(shape[request.path])
            return web.Response(status=404)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        runners.append(runner)
        return int(runner.addresses[0][1])

    yield run
    for runner in runners:
        await runner.cleanup()


def known(kind: str, port: int) -> tuple[Known, ...]:
    """The known server of that kind, looked for on another port."""
    return tuple(Known(kind, port, one.check) for one in KNOWN if one.kind == kind)


def test_the_usual_ports_are_looked_at() -> None:
    assert {one.kind: one.port for one in KNOWN} == {
        "ollama": 11434,
        "llama.cpp": 8080,
        "lm-studio": 1234,
        "vllm": 8000,
        "sglang": 30000,
    }


@pytest.mark.parametrize("kind", list(SHAPES))
async def test_each_server_is_known_by_its_own_shape_only(kind: str, start: Start) -> None:
    for other, shape in SHAPES.items():
        port = await start(shape)
        found = await asyncio.to_thread(find, known(kind, port))
        url = f"http://127.0.0.1:{port}"
        if other == kind:
            assert found == [Server(kind, url, ("qwen3:4b",))]
        else:
            assert found == [Server(kind, url, why_not=f"what listens on port {port} is not {kind}")]


async def test_a_server_without_a_model_is_not_offered(start: Start) -> None:
    port = await start({"/api/version": {"version": "1"}, "/api/tags": {"models": []}})
    assert (await asyncio.to_thread(find, known("ollama", port)))[0].why_not == "it offers no model"


async def test_a_socket_of_another_user_is_told_and_never_contacted(start: Start, tmp_path: Path) -> None:
    asked: list[str] = []

    class Shape(dict[str, Any]):
        def __contains__(self, path: object) -> bool:
            asked.append(str(path))
            return False

    port = await start(Shape())
    line = f"   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 12345        0 1 1\n"
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text("  sl  local_address\n" + line)
    assert listeners(port, tmp_path) == {12345}
    found = await asyncio.to_thread(find, known("ollama", port), tmp_path)
    assert found[0].why_not == "its socket belongs to another user (uid 12345)"
    assert asked == []


async def test_the_owner_of_a_real_socket_is_found(start: Start) -> None:
    port = await start({})
    assert listeners(port) == {os.getuid()}
    assert listeners(9) in (set(), None)


def test_a_provider_key_is_told_by_its_variable_and_never_by_its_value() -> None:
    found = discovery.search({"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": ""}, ())
    assert [(item.kind, item.reason, item.key_env) for item in found] == [
        ("openai", "OPENAI_API_KEY is set", "OPENAI_API_KEY")
    ]
    assert "sk-secret" not in json.dumps([item.to_json() for item in found])


def test_without_a_yes_the_choice_is_the_embedded_model(paths: Paths) -> None:
    found = discovery.search({"OPENAI_API_KEY": "k"}, ())
    marked, choice = discovery.choose(paths, found)
    assert (choice.kind, choice.model) == ("embedded", "SmolLM2-135M-Instruct")
    assert [item.confirmed for item in marked] == [False]
    assert discovery.build(Settings(), paths).name == "embedded"


def test_a_yes_is_kept_and_asked_for_once(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    found = discovery.search({"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": "k"}, ())
    discovery.confirm(paths, "openai", found)
    stored = paths.state / "engine.json"
    assert stored.stat().st_mode & 0o077 == 0 and "sk-secret" not in stored.read_text()
    marked, choice = discovery.choose(paths, found)
    assert choice.kind == "openai" and choice.reason.startswith("you chose it on ")
    assert [(item.confirmed, item.why_not) for item in marked] == [(True, None), (False, "you chose openai")]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    engine = discovery.build(Settings(), paths)
    assert engine.base_url == "https://api.openai.com/v1"
    assert engine.headers() == {"authorization": "Bearer sk-secret"}


async def test_a_confirmed_key_that_is_gone_is_no_reason_to_use_something_else(paths: Paths) -> None:
    discovery.confirm(paths, "openai", discovery.search({"OPENAI_API_KEY": "k"}, ()))
    engine = discovery.build(Settings(), paths)
    health = await engine.health()
    assert (engine.name, health.state, health.detail) == ("upstream", "failed", "OPENAI_API_KEY is not set")


def test_only_what_was_found_can_be_confirmed(paths: Paths) -> None:
    with pytest.raises(NotFound, match="embedded"):
        discovery.confirm(paths, "ollama", [])
    discovery.confirm(paths, "embedded", [])
    assert discovery.build(Settings(), paths).name == "embedded"


def test_settings_go_before_what_was_confirmed(paths: Paths) -> None:
    discovery.confirm(paths, "openai", discovery.search({"OPENAI_API_KEY": "k"}, ()))
    own = Settings(inference=InferenceSection(upstream_url="http://127.0.0.1:1", upstream_model="m"))
    assert discovery.build(own, paths).base_url == "http://127.0.0.1:1/v1"
    assert discovery.build(Settings(inference=InferenceSection(backend="embedded")), paths).name == "embedded"


def test_a_model_without_an_address_is_refused(paths: Paths) -> None:
    for section in (InferenceSection(upstream_model="m"), InferenceSection(backend="upstream")):
        with pytest.raises(ConfigError, match="no address"):
            discovery.build(Settings(inference=section), paths)


def test_a_providers_key_goes_to_its_own_host_only(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    for url, key in (("https://api.openai.com", "Bearer sk-secret"), ("https://api.openai.com.evil.example", None)):
        engine = discovery.build(Settings(inference=InferenceSection(upstream_url=url)), paths)
        assert engine.headers().get("authorization") == key


def test_the_command_prints_json_and_stores_a_yes(paths: Paths) -> None:
    def run(*arguments: str) -> Any:
        env = {**os.environ, "MISTRAL_API_KEY": "secret-value"}
        command = [sys.executable, "-m", "reef.engines.discovery", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
        assert "secret-value" not in done.stdout + done.stderr
        return json.loads(done.stdout)

    told = run("--json")
    assert told["choice"]["kind"] == "embedded" and told["reason"]
    assert "mistral" in [item["kind"] for item in told["found"]]
    assert run("--confirm", "mistral")["choice"]["kind"] == "mistral"
    assert run("--json")["choice"]["url"] == "https://api.mistral.ai/v1"
