"""Adapters of one's own: an agent that reef has never heard of is installed, pointed at reef and given rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.wheels import wheel
from tests.http.running import Home

ADAPTER = """
name = "{name}"
title = "Tiny"
binary = "{binary}"
dialect = "chat"
home-variable = "TINY_HOME"
session-header = "x-reef-session"

{install}

[run]
headless = ["{{prompt}}"]
version = ["--version"]
{run}

[render]
rules = "RULES.md"
skill = "skills/{{id}}/SKILL.md"

[binding."tiny.toml".server]
url = "{{base_url}}"
model = "{{model}}"
key_variable = "REEF_SESSION"
"""
PYPI = """
[install]
kind = "pypi"
package = "tiny-agent"
version = "0.4"
binary-path = "bin/tiny"
python = "3.11"
"""
PROGRAM = """
import json, os, pathlib, sys, tomllib, urllib.request

def main():
    if sys.argv[1:] == ["--version"]:
        print("tiny 0.5")
        return
    home = pathlib.Path(os.environ["TINY_HOME"])
    server = tomllib.loads((home / "tiny.toml").read_text())["server"]
    messages = [{"role": "system", "content": (home / "RULES.md").read_text()}]
    messages.append({"role": "user", "content": " ".join(sys.argv[1:])})
    headers = {"authorization": "Bearer " + os.environ[server["key_variable"]]}
    headers["content-type"] = "application/json"
    body = json.dumps({"model": server["model"], "messages": messages}).encode()
    request = urllib.request.Request(server["url"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request) as reply:
        print(json.load(reply)["choices"][0]["message"]["content"])

if __name__ == "__main__":
    main()
"""


def describe(home: Home, name: str, install: str, run: str = "", binary: str = "tiny") -> Path:
    """Write an adapter with a rule of its own into the person's configuration."""
    folder = home.paths.config / "adapters" / name
    (folder / "base" / "rules").mkdir(parents=True)
    (folder / "adapter.toml").write_text(ADAPTER.format(name=name, install=install, run=run, binary=binary))
    (folder / "base" / "rules" / f"reef-{name}.md").write_text(f"The agent {name} says aye.\n")
    return folder


@pytest.fixture
def house(new_home: Callable[..., Home], tmp_path: Path) -> Iterator[Home]:
    """A daemon whose person has described two agents: one from a registry, one that is theirs to install."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    path = {"PATH": f"{tmp_path / 'mine'}:/usr/bin:/bin"}
    home = new_home(environ={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), **path})
    lock = wheel(wheels, "tiny_agent", "0.4", {"tiny_agent.py": PROGRAM}, "tiny = tiny_agent:main")
    (describe(home, "tiny", PYPI) / "requirements.lock").write_text(lock)
    describe(home, "own", "", 'get = "brew install tiny"\ntested = "tiny 0.4"', "my-tiny")
    yield home.start()


def reef(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "reef.cli.app", *arguments]
    return subprocess.run(command, env=home.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def wrapper(home: Home, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(home.folder / "bin" / f"reef-{name}"), *arguments]
    return subprocess.run(command, env=home.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_an_agent_that_the_person_described_is_installed_run_and_recorded(house: Home, tmp_path: Path) -> None:
    added = reef(house, "agents", "add", "tiny", "-s", "default")
    assert added.returncode == 0, added.stderr
    assert "Tiny 0.4" in added.stderr
    said = wrapper(house, "tiny", "say", "hello")
    assert (said.returncode, said.stdout) == (0, "You said: say hello\n"), said.stderr
    (record,) = json.loads(reef(house, "records", "list", "-s", "default", "--json").stdout)
    assert (record["adapter"], record["version"], record["source"]) == ("tiny", 1, "agent")
    asked = reef(house, "records", "show", record["agent_record_id"], "--request").stdout
    assert "The agent tiny says aye." in asked and "The agent own says aye." not in asked
    listed = {row["name"]: row for row in json.loads(reef(house, "agents", "list", "--json").stdout)}
    assert (listed["tiny"]["version"], listed["tiny"]["installed"]) == ("0.4", True)
    assert (listed["own"]["version"], listed["own"]["installed"]) == (None, False)
    shown = reef(house, "agents", "show", "tiny").stdout.splitlines()
    assert shown[:3] == [
        "agent      Tiny",
        "program    tiny-agent 0.4 from PyPI, needs Python 3.11 or later",
        "installed  0.4",
    ]
    assert reef(house, "agents", "show", "nobody").returncode == 1
    alongside = wrapper(house, "tiny", "--alongside", "hi")
    assert alongside.returncode == 5
    assert "Tiny cannot be run on top of your own configuration" in alongside.stderr


def test_an_agent_that_is_the_persons_to_install_is_the_one_on_their_path(house: Home, tmp_path: Path) -> None:
    missing = reef(house, "agents", "add", "own", "-s", "default")
    assert missing.returncode == 1
    assert "Tiny is yours to install, and no PATH here has my-tiny" in missing.stderr
    assert "hint: brew install tiny" in missing.stderr
    program = tmp_path / "mine" / "my-tiny"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    assert reef(house, "agents", "add", "own", "-s", "default").returncode == 0
    said = wrapper(house, "own", "aye")
    assert (said.returncode, said.stdout) == (0, "You said: aye\n"), said.stderr
    listed = {row["name"]: row for row in json.loads(reef(house, "agents", "list", "--json").stdout)}
    assert listed["own"]["installed"] is True
    shown = reef(house, "agents", "list").stdout.splitlines()
    assert [line.split()[:2] for line in shown if line.split()[:1] == ["own"]] == [["own", "yours"]]
