"""An installation that the daemon makes takes the way to the registries of whoever asked for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.cli import quickstart
from reef.client import Client
from reef.errors import Failed
from tests.http.running import Home

OWN = ("HTTPS_PROXY", "PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


@pytest.fixture
def fetching_home(new_home: Callable[..., Home], tmp_path: Path) -> Home:
    """A home whose daemon was started with another proxy; its npm writes down what it was given, and fails."""
    programs = tmp_path / "programs"
    programs.mkdir()
    heard = f'echo "$HTTPS_PROXY $NODE_EXTRA_CA_CERTS" >> {tmp_path}/heard'
    for name, script in {"node": 'echo "$0"; echo v24.0.0', "npm": f"{heard}; exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HTTPS_PROXY": "http://old:1"}
    return new_home(environ=environ).start()


def test_both_installs_use_the_callers_variables_and_not_those_of_the_daemons_start(
    fetching_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in OWN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://new:2")
    monkeypatch.setenv("PIP_CERT", "/new/ca.pem")
    with Client.connect(fetching_home.paths, start=False) as client:
        with pytest.raises(Failed, match="cannot be installed"):
            list(client.install_agent("pi"))
        with pytest.raises(Failed, match="cannot be installed"):
            list(client.install_harness("default", "pi"))
    assert (tmp_path / "heard").read_text() == "http://new:2 /new/ca.pem\n" * 2


def test_a_variable_that_could_do_more_is_refused_before_anything_runs(fetching_home: Home, tmp_path: Path) -> None:
    body = {"adapter": "pi", "scenario": "default", "environment": {"NODE_OPTIONS": "--require /evil.js"}}
    for path in ("/reef/agents/pi", "/reef/harness/install"):
        assert fetching_home.nobody.post(path, json=body).status_code in (401, 403)
        reply = fetching_home.person.post(path, json=body)
        assert (reply.status_code, "not 'NODE_OPTIONS'" in reply.json()["error"]["message"]) == (400, True)
    assert not (tmp_path / "heard").exists()


def test_a_quickstart_that_fails_names_the_command_that_was_typed(
    fetching_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REEF_INSTALLER", "./install.sh")
    with Client.connect(fetching_home.paths, start=False) as client, pytest.raises(Failed) as failed:
        quickstart.install_agent(client, fetching_home.paths)
    assert (failed.value.hint or "").endswith("then: ./install.sh quickstart")
