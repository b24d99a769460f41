"""A daemon that a command starts by itself serves as the last one that a person started, and says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pytest

from reef.client import Client, read_discovery
from reef.errors import CredentialMissing
from tests.cli import shell
from tests.http.running import Home


@pytest.fixture
def quiet(new_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home that this process lives in, whose daemon is down; what tests start in it is ended."""
    home = new_home()
    for name in ("REEF_UPSTREAM_API_KEY", "REEF_TOKEN", "REEF_SESSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    yield home
    if (left := read_discovery(home.paths)) is not None:
        os.kill(left["pid"], 9)


def connect(home: Home) -> tuple[Client, list[list[str]]]:
    told: list[list[str]] = []
    return Client.connect(home.paths, start=True, told=told.append), told


def end(home: Home) -> None:
    assert shell.reef("down", "--now", env=home.env, alone=True).status == 0


def test_a_start_by_itself_serves_as_the_last_one_and_leaves_it_remembered(quiet: Home) -> None:
    quiet.start()
    quiet.stop()
    kept = (quiet.paths.state / "last-serve.json").read_bytes()
    for _ in range(2):
        client, told = connect(quiet)
        with client:
            engine = client.status()["engine"]
            assert (engine["url"].startswith(quiet.upstream), engine["model"]) == (True, "fake-model")
            parts = ["daemon started", client.url, "engine upstream fake-model (as the last reef up)"]
            assert told == [parts]
        end(quiet)
    assert (quiet.paths.state / "last-serve.json").read_bytes() == kept


def test_a_daemon_that_runs_is_not_told_as_started(quiet: Home) -> None:
    quiet.start()
    client, told = connect(quiet)
    client.close()
    assert told == []


def test_a_command_says_on_stderr_that_it_started_the_daemon_and_as_what(quiet: Home) -> None:
    flags = ["--inference.upstream-url", quiet.upstream, "--inference.upstream-model", "fake-model"]
    assert shell.reef("up", "--reef.port", "0", *flags, env=quiet.env, alone=True).status == 0
    end(quiet)
    ran = shell.reef("scenarios", "create", "coding", env=quiet.env, alone=True)
    assert ran.status == 0, ran.all
    assert ran.err.startswith("daemon started · http://127.0.0.1:")
    assert ran.err.splitlines()[0].endswith(" · engine upstream fake-model (as the last reef up)")
    assert "daemon started" not in shell.reef("scenarios", "create", "other", env=quiet.env, alone=True).err


def test_a_start_whose_secret_is_not_set_any_more_is_refused_with_4(
    quiet: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REEF_UPSTREAM_API_KEY", "hush")
    quiet.environ["REEF_UPSTREAM_API_KEY"] = "hush"
    quiet.start()
    quiet.stop()
    assert "hush" not in (quiet.paths.state / "last-serve.json").read_text()
    client, _ = connect(quiet)
    client.close()
    end(quiet)
    monkeypatch.delenv("REEF_UPSTREAM_API_KEY")
    with pytest.raises(CredentialMissing) as refused:
        connect(quiet)
    assert refused.value.hint == "export REEF_UPSTREAM_API_KEY=…"
    del quiet.environ["REEF_UPSTREAM_API_KEY"]
    ran = shell.reef("scenarios", "create", "coding", env=quiet.env, alone=True)
    assert (ran.status, "hint: export REEF_UPSTREAM_API_KEY=…" in ran.err) == (4, True)
    assert read_discovery(quiet.paths) is None


def test_the_next_typed_start_is_the_one_that_is_remembered_then(quiet: Home) -> None:
    quiet.start()
    quiet.stop()
    embedded = quiet.launch(["inference.backend", "embedded"], ["reef.port", "0"], base=False)
    quiet.wait_up(embedded)
    embedded.terminate()
    embedded.wait(20)
    kept = json.loads((quiet.paths.state / "last-serve.json").read_text())
    assert kept["flags"] == [["inference.backend", "embedded"], ["reef.port", "0"]]
