"""The client: finds this home's daemon, sends its key to nobody else, and knows when it is inside an agent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from reef.client import Client, current_scenario, in_session, read_discovery, running, start_daemon, wait_stopped
from reef.errors import ConfigError, Conflict, DaemonUnreachable, Forbidden, NotFound
from reef.paths import Paths
from tests.http.running import Home, chat


@pytest.fixture
def inhabit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Home], Paths]:
    """Make this process a process of a home."""

    def move(home: Home) -> Paths:
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        return home.paths

    return move


@pytest.fixture
def liar(new_home: Callable[..., Home]) -> Iterator[tuple[Home, list[bytes]]]:
    """A home whose discovery file points at a stranger that answers everything with 200."""
    home = new_home().start()
    home.stop()
    heard: list[bytes] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def answer() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    heard.append(line.recv(65536))
                    line.sendall(b'HTTP/1.1 200 OK\r\nx-reef-proof: 0\r\ncontent-length: 11\r\n\r\n{"ok":true}')

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        home.paths.discovery.write_text(json.dumps({"url": url, "pid": os.getpid(), "version": "0.1.0"}))
        yield home, heard


def test_a_stranger_on_the_port_gets_a_challenge_and_never_the_key(
    liar: tuple[Home, list[bytes]], inhabit: Callable[[Home], Paths]
) -> None:
    home, heard = liar
    paths = inhabit(home)
    with pytest.raises(DaemonUnreachable) as refused:
        Client.connect(paths, start=False)
    assert refused.value.hint == "reef up"
    assert heard and all(home.key.encode() not in request for request in heard)


def test_without_a_daemon_the_client_says_reef_up(paths: Paths) -> None:
    with pytest.raises(DaemonUnreachable) as refused:
        Client.connect(paths, start=False)
    assert (refused.value.exit_code, refused.value.hint) == (3, "reef up")


def test_the_daemon_is_started_when_it_is_needed_and_found_again(
    new_home: Callable[..., Home], inhabit: Callable[[Home], Paths]
) -> None:
    paths = inhabit(new_home())
    flags = [["reef.port", "0"], ["inference.upstream-url", "http://127.0.0.1:9"]]
    found = start_daemon(paths, {"flags": flags})
    try:
        assert running(paths) == found
        with Client.connect(paths) as client:
            assert client.status()["pid"] == found["pid"]
            assert client.stop() == {"stopping": True, "now": False, "running_calls": 0}
        assert wait_stopped(found, paths, 10)
        assert read_discovery(paths) is None
    finally:
        if (left := read_discovery(paths)) is not None:
            os.kill(left["pid"], 9)


def test_a_start_that_fails_raises_the_daemons_own_error(
    new_home: Callable[..., Home], inhabit: Callable[[Home], Paths]
) -> None:
    paths = inhabit(new_home())
    with pytest.raises(ConfigError) as refused:
        start_daemon(paths, {"flags": [["reef.prot", "1"]]})
    assert refused.value.hint == "did you mean 'reef.port'?"
    assert list(paths.state.glob(".start-*")) == []


def test_a_daemon_of_another_version_is_named_and_can_still_be_stopped(
    new_home: Callable[..., Home], inhabit: Callable[[Home], Paths]
) -> None:
    home = new_home().start()
    paths = inhabit(home)
    found = json.loads(paths.discovery.read_text())
    paths.discovery.write_text(json.dumps(found | {"version": "0.0.9"}))
    with Client.connect(paths, start=False) as client:
        with pytest.raises(Conflict) as refused:
            client.status()
        assert "0.0.9" in refused.value.message
        assert refused.value.hint == "reef down && reef up"
        client.stop()
    assert wait_stopped(found, paths, 10)


def test_every_method_speaks_to_its_route(home: Home, inhabit: Callable[[Home], Paths]) -> None:
    paths = inhabit(home)
    with Client.connect(paths, start=False) as client:
        assert client.create_scenario("by-client")["scenario"] == "by-client"
        reply, receipt = client.chat("by-client", {"messages": [{"role": "user", "content": "hi"}]})
        assert reply["choices"] and receipt is not None
        assert client.record(receipt)["scenario"] == "by-client"
        assert json.loads(client.record_body(receipt, "request"))["messages"]
        assert client.records(scenario="by-client", limit=5)["total"] == 1
        report = client.report("by-client", {"score": 1, "references": [receipt]})["agent_record_id"]
        assert client.withdraw_report(report)["withdrawn"] is True
        assert client.releases("by-client")["releases"][0]["version"] == 1
        assert client.version("by-client", 1)["files"]
        assert client.diff("by-client", "v1", "v1")["files"] == []
        assert client.harness("by-client")["version"] == 1
        assert client.asks("by-client") == {"asks": []} and client.steps() == {"steps": []}
        assert {row["name"] for row in client.recipes()["recipes"]} >= {"basic", "reefine"}
        settings = {row["key"]: row for row in client.config()["settings"]}
        assert settings["reef.token"]["value"] == "unset"
        assert client.adapters()["adapters"] and client.models()["data"] and client.scenarios()["scenarios"]
        opened = client.open_session("by-client", "pi", 1, "/tmp", os.getpid())
        assert client.sessions(scenario="by-client")["sessions"][0]["id"] == opened["session"]
        assert client.close_session(opened["session"])["closed"] is True
        event = next(client.events(after=0))
        assert event["sequence"] == 1
        for wrong in (
            lambda: client.promote("by-client", 9),
            lambda: client.rollback("by-client", 9),
            lambda: client.step("by-client", 9),
            lambda: client.ask("9", "by-client"),
            lambda: next(client.install_harness("nowhere", "pi")),
            lambda: next(client.install_agent("nobody")),
            lambda: client.ask_progress("0" * 32),
        ):
            with pytest.raises(NotFound):
                wrong()


def test_inside_a_session_the_person_key_is_not_sent(
    home: Home, inhabit: Callable[[Home], Paths], monkeypatch: pytest.MonkeyPatch, session_token: str
) -> None:
    paths = inhabit(home)
    receipt = chat(home.nobody, "hi").headers["x-reef-agent-record-id"]
    monkeypatch.setenv("REEF_SESSION", session_token)
    with Client.connect(paths, start=False) as client:
        client.report("default", {"score": 1, "references": [receipt]})
        with pytest.raises(Forbidden) as refused:
            client.rollback("default", 1)
        assert refused.value.exit_code == 5
    assert home.person.get(f"/reef/records/{receipt}").json()["reports"][0]["source"] == "agent"


def test_a_wrapper_among_the_parents_is_a_session_even_without_the_variable(home: Home) -> None:
    question = "from reef.client import in_session; print(in_session())"
    inner = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {question!r}]).returncode)"
    # A process whose command line is a wrapper's, with the question two levels below it.
    named = subprocess.run(
        [sys.executable, "-c", inner, "reef.harness.wrapper"], env=home.env, capture_output=True, text=True, check=True
    )
    assert named.stdout == "True\n"
    assert not in_session()


def test_strange_proxy_variables_of_the_environment_change_nothing(
    home: Home, inhabit: Callable[[Home], Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = inhabit(home)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8, .corp.example,*,[::1],")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Client.connect(paths, start=False) as client:
        assert client.status()["version"]


def test_the_current_scenario_is_said_with_its_origin(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_scenario(paths) == ("default", "default")
    paths.last_install.write_text("installed\n")
    assert current_scenario(paths) == ("installed", "last install")
    paths.current_scenario.write_text("used\n")
    assert current_scenario(paths) == ("used", "reef use")
    monkeypatch.setenv("REEF_SCENARIO", "variable")
    assert current_scenario(paths) == ("variable", "REEF_SCENARIO")
    assert current_scenario(paths, "flag") == ("flag", "--scenario")
