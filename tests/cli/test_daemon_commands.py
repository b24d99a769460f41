"""`reef up`, `down`, `status`, `serve`, `logs` against a real daemon."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from reef.cli.up import tell
from reef.errors import Failed
from reef.paths import Paths
from tests.cli.conftest import Live, home_environment
from tests.cli.shell import on_terminal, reef

Started = Callable[..., subprocess.Popen[str]]

# A registry and a proxy where nobody listens: nothing is fetched and no provider is called.
NOWHERE = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "UV_INDEX_URL": "http://127.0.0.1:9/simple",
    "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
    "HTTPS_PROXY": "http://127.0.0.1:9",
}


def test_up_then_up_again_then_down_then_down_again(up_flags: list[str], paths: Paths) -> None:
    first = reef("up", *up_flags)
    assert first.status == 0
    assert first.out.startswith("daemon up · http://127.0.0.1:")
    assert "engine upstream · fake-model" in first.out
    assert first.err.startswith("engine upstream http://127.0.0.1:")
    assert "named by flag" in first.err
    assert "next   reef tui" in first.err
    again = reef("up", *up_flags)
    assert (again.status, again.out.startswith("daemon already running · ")) == (0, True)
    other = reef("up", "--recipe", "reefine", *up_flags)
    assert other.status == 1
    assert "another recipe (running: basic, asked for: reefine)" in other.err
    typed = " ".join(["up", "--recipe", "reefine", *up_flags])
    assert other.err.endswith(f"hint: reef down && reef {typed}\n")
    assert (reef("down").out, reef("down").out) == ("daemon stopped\n", "the daemon is not running\n")
    assert reef("status").status == 3


def test_a_writing_command_starts_the_daemon(paths: Paths, model_server: str) -> None:
    paths.config_file.write_text(f"reef:\n  port: 0\ninference:\n  upstream-url: {model_server}\n")
    made = reef("scenarios", "create", "mine")
    assert (made.status, made.out) == (0, "scenario mine · v1 · recipe basic\n")
    assert reef("scenarios", "create", "mine").status == 0
    assert [row["name"] for row in json.loads(reef("scenarios", "list", "--json").out)] == ["default", "mine"]
    reef("down")
    # The database itself answers while the daemon is down.
    offline = reef("scenarios", "list")
    assert offline.status == 0
    assert "mine" in offline.out
    assert "read from the database" in offline.err
    assert reef("records", "list", "-s", "nobody").err.startswith("the daemon is not running")
    assert reef("records", "list", "-s", "nobody").status == 1


def test_a_key_that_was_typed_is_in_no_hint(live: Live) -> None:
    other = live.reef("up", "--inference.upstream-api-key", "sk-mine", "--inference.upstream-model", "other")
    assert other.status == 1
    assert "another model (running: fake-model, asked for: other)\n\nhint: reef down && reef up …" in other.err
    assert "sk-mine" not in other.err


def test_up_says_how_to_start_ollama_where_nothing_answers() -> None:
    reason = "the model server at http://127.0.0.1:11434/v1 does not answer: connection refused"
    engine = {"name": "upstream", "model": "qwen3", "state": "down", "detail": reason}
    for port, hint in ((11434, "ollama serve"), (8080, "reef logs")):
        with pytest.raises(Failed) as raised:
            tell({"url": "http://127.0.0.1:8900", "engine": engine | {"url": f"http://127.0.0.1:{port}/v1"}}, False)
        assert (reason in raised.value.message, raised.value.hint) == (True, hint)


def test_up_names_the_command_that_installs_what_reaches_a_vendor() -> None:
    shown = reef("up", "--model", "bedrock/claude", "--reef.port", "0")
    assert shown.status == 2 and "engine litellm bedrock/claude" in shown.err
    assert "litellm, which is not installed\n\nhint: ./install.sh --with providers" in shown.err


def test_up_warns_of_a_model_that_the_server_does_not_have(up_flags: list[str], paths: Paths) -> None:
    flags = [flag if flag != "fake-model" else "nosuch" for flag in up_flags]
    shown = reef("up", *flags)
    assert shown.status == 0
    assert "warning: the model server has no model nosuch (it has: fake-model" in shown.err
    reef("down")


def test_status_shows_facts_for_a_person_and_an_object_for_a_program(live: Live) -> None:
    shown = live.reef("status")
    lines = shown.out.splitlines()
    assert lines[0].startswith("reef 0.1.0 · up ")
    assert live.url in lines[0]
    assert any(line.startswith("engine     upstream fake-model · ready") for line in lines)
    assert any(line.startswith("grown      v2 · v3 pending, needs you") for line in lines)
    assert "needs you  v3 of grown changes code   reef versions show v3 -s grown" in lines
    found = live.json("status")
    assert {"version", "url", "pid", "engine", "scenarios", "records", "agents", "needs_you"} <= set(found)


def test_status_works_inside_an_agents_session(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    assert live.reef("status", env={"REEF_SESSION": token}).status == 0


def test_logs_show_the_last_lines(live: Live) -> None:
    shown = live.reef("logs", "-n", "200")
    assert "answers at" in shown.out
    assert len(live.reef("logs", "-n", "1").out.splitlines()) == 1
    assert live.reef("logs", "-n", "0").out == ""


def test_logs_follow_across_a_rotation(started: Started, paths: Paths) -> None:
    paths.daemon_log.write_text("one\n")
    child = started("logs", "-f")
    assert child.stdout is not None
    assert child.stdout.readline() == "one\n"
    with paths.daemon_log.open("a") as file:
        file.write("two \x1b[2J\n")
    assert child.stdout.readline() == "two ␛[2J\n"
    paths.daemon_log.rename(paths.state / "daemon.log.1")
    paths.daemon_log.write_text("three\n")
    assert child.stdout.readline() == "three\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) == 130


def test_logs_without_a_log_say_what_to_type() -> None:
    shown = reef("logs")
    assert shown.status == 1
    assert shown.err.endswith("hint: reef up\n")


def test_serve_runs_in_the_foreground_until_ctrl_c(started: Started, up_flags: list[str], paths: Paths) -> None:
    child = started("serve", *up_flags)
    deadline = time.monotonic() + 30
    while not paths.discovery.exists() or reef("status").status != 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert json.loads(paths.discovery.read_text())["pid"] == child.pid
    assert reef("serve", *up_flags).status == 0
    assert reef("serve", "--recipe", "reefine", *up_flags).status == 1
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=40) in (0, 130)


def test_down_waits_for_a_running_call_and_a_second_down_cuts_it(
    started: Started, tmp_path: Path, up_flags: list[str]
) -> None:
    env = home_environment(tmp_path)
    assert reef("up", *up_flags, env=env).status == 0
    url = json.loads(Paths.from_environ(env).discovery.read_text())["url"]
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "[[paced 2000 20ms]]"}]}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as reply:
        pieces = reply.iter_bytes()
        next(pieces)
        first = started("down", env=env)
        assert first.stderr is not None
        assert "waiting for 1 running call" in first.stderr.readline()
        first.send_signal(signal.SIGINT)
        assert "the daemon goes on stopping" in first.stderr.readline()
        began = time.monotonic()
        assert reef("down", env=env).out == "daemon stopped\n"
        for _ in pieces:
            pass
    assert time.monotonic() - began < 20
    assert first.wait(timeout=20) == 130
    offline = json.loads(reef("records", "list", "--json", env=env).out)
    assert [row["state"] for row in offline] == ["partial"]


@pytest.mark.parametrize("answer", ["y", "n"])
def test_up_uses_what_it_found_only_after_a_yes_on_a_terminal(answer: str, paths: Paths, tmp_path: Path) -> None:
    paths.config_file.write_text("reef:\n  port: 0\n")
    env = {"OPENAI_API_KEY": "sk-none-of-your-business", "NO_COLOR": "1", **NOWHERE}
    status, shown = on_terminal("up", keys=[("for every call?", f"{answer}\r")], env=env)
    confirmed = paths.state / "engine.json"
    reef("down", "--now")
    assert "found  openai" in shown
    assert "sk-none" not in shown
    assert json.loads(confirmed.read_text())["kind"] == ("openai" if answer == "y" else "embedded")
    assert "sk-none" not in confirmed.read_text()
    assert status in (0, 1)


def test_up_without_a_terminal_names_what_it_found_and_uses_the_embedded_model(started: Started, paths: Paths) -> None:
    paths.config_file.write_text("reef:\n  port: 0\n")
    child = started("up", env={"GROQ_API_KEY": "gsk-none", **NOWHERE})
    assert child.stderr is not None
    # The fourth line is what the daemon says of its engine: from then on it can be stopped.
    said = "".join(child.stderr.readline() for _ in range(4))
    child.terminate()
    child.communicate(timeout=30)
    assert reef("down", "--now").out == "daemon stopped\n"
    assert "found  groq · GROQ_API_KEY is set" in said
    assert "engine embedded" in said
    assert not (paths.state / "engine.json").exists()
