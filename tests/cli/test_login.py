"""`reef up --at-login`: one entry of the system's own kind, with the flags as typed and without a secret."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from reef.cli import login
from reef.cli.flags import understand
from reef.errors import Refused
from reef.paths import Paths


@pytest.fixture(autouse=True)
def no_session_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with a `systemctl` and a `launchctl` that only write down what they were asked."""
    said = tmp_path / "asked"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("systemctl", "launchctl"):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho {name} "$@" >> {shlex.quote(str(said))}\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return said


def test_on_linux_it_is_a_systemd_user_unit(
    monkeypatch: pytest.MonkeyPatch, no_session_of_the_system: Path, paths: Paths, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    deployment = tmp_path / "my reef.yaml"
    deployment.write_text("reef:\n  port: 8905\n")
    wanted = understand(paths, ["--inference.upstream-model", 'odd "$x" 50%'], deployment, "reefine", None)
    told = login.enable(wanted)
    unit = Path.home() / ".config" / "systemd" / "user" / "reef.service"
    assert told == [f"starts at login: {unit}"]
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit.read_text())
    start = shlex.split(parsed["Service"]["ExecStart"].replace("$$", "$").replace("%%", "%"))
    assert start[:5] == [sys.executable, "-P", "-m", "reef.cli.app", "serve"]
    assert start[5:7] == ["-c", str(deployment)]
    assert start[7:] == ["--recipe.implementation=reefine", '--inference.upstream-model=odd "$x" 50%']
    assert f'Environment="REEF_HOME={os.environ["REEF_HOME"]}"' in unit.read_text()
    assert parsed["Install"]["WantedBy"] == "default.target"
    asked = no_session_of_the_system.read_text().splitlines()
    assert asked == ["systemctl --user daemon-reload", "systemctl --user enable reef.service"]
    assert login.enable(wanted) == [f"starts at login already: {unit}"]
    assert login.disable() == [f"removed: {unit}"]
    assert not unit.exists()
    assert login.disable() == ["it does not start at login"]


def test_on_macos_it_is_a_launch_agent(monkeypatch: pytest.MonkeyPatch, paths: Paths) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    login.enable(understand(paths, [], None, None, "embedded"))
    agent = Path.home() / "Library" / "LaunchAgents" / "reef.daemon.plist"
    found = plistlib.loads(agent.read_bytes())
    assert found["ProgramArguments"][-2:] == ["serve", "--inference.backend=embedded"]
    assert found["EnvironmentVariables"]["REEF_HOME"] == os.environ["REEF_HOME"]
    assert found["RunAtLoad"] is True
    login.disable()
    assert not agent.exists()


@pytest.mark.parametrize("flag", ["--reef.token=abc", "--inference.upstream-api-key=abc", '--reef.tokens=["abc"]'])
def test_a_secret_is_not_written_into_it(flag: str, paths: Paths) -> None:
    with pytest.raises(Refused, match="would write a secret"):
        login.enable(understand(paths, [flag], None, None, None))
    assert not login.place().exists()


def test_without_the_systems_tool_it_says_what_to_run(monkeypatch: pytest.MonkeyPatch, paths: Paths) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", "/nonexistent")
    told = login.enable(understand(paths, [], None, None, None))
    assert told[-1] == "not switched on (systemctl is not here); run: systemctl --user enable reef.service"
