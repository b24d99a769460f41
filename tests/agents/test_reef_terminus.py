"""Terminus 2 on a Harbor task folder: installed with a network, run where only loopback answers."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reef.harness.adapter import load_adapter
from reef.harness.agents import install_agent
from reef.paths import Paths
from tests.agents.conftest import kept
from tests.e2e.home import Home, linked, requests_of
from tests.e2e.room import Room

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

RULE = "never use tabs in python"
SKILL = "---\nname: linter\ndescription: how to lint here\n---\nRun the planted linter.\n"
DONE = {
    "analysis": "nothing is there",
    "plan": "make it",
    "commands": [{"keystrokes": "echo made > proof.txt\n", "duration": 1}],
    "task_complete": True,
}


@pytest.fixture
def coding(tmp_path: Path, need_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with Terminus, a daemon on the scripted upstream, and scenario `coding`."""
    store = kept(tmp_path_factory)
    places = Paths.from_environ({"HOME": str(store), "REEF_HOME": str(store / "home")})
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install_agent(
            load_adapter("terminus", places), replace(places, data=store, cache=store / "cache"), lambda _: None
        )
    room = Room(need_tool("bwrap"))
    home = Home(tmp_path / "person", room)
    linked(store / "agents", home.data / "agents")
    url, _ = home.fake_upstream()
    upstream = f"--inference.upstream-url {url} --inference.upstream-model fake-model"
    home.ok(f"reef up --recipe reefine --harness.adapter terminus {upstream}")
    home.ok("reef scenarios create coding && reef versions install -s coding --adapter terminus")
    yield home
    home.sh("reef down --now")
    room.close()


def test_a_task_folder_is_worked_on_with_the_rules_and_skills_of_the_version(coding: Home) -> None:
    entries = [
        {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
        {"op": "create", "id": "linter", "kind": "skill", "text": SKILL},
    ]
    (coding.project / "ask").write_text(f"[[propose {json.dumps({'entries': entries, 'summary': 'planted'})}]]")
    coding.ok('reef ask "$(cat ask)" -s coding --wait', timeout=300)
    coding.ok("reef versions install v2 -s coding --adapter terminus")
    task = coding.folder / "task"
    task.mkdir()
    (task / "instruction.md").write_text(f"Make proof.txt. [[say {json.dumps(DONE)}]]\n")
    (task / "task.toml").write_text("[agent]\ntimeout_sec = 120\n")
    before, asked = coding.checksums(), len(requests_of(coding.upstream_log))
    said = coding.ok(f"reef-terminus --turns 1 {task}", timeout=200)
    assert (coding.project / "proof.txt").read_text() == "made\n"
    trajectory = json.loads(Path(said.strip().rpartition("trajectory: ")[2]).read_text())
    assert trajectory["agent"]["name"] == "terminus-2"
    sent = requests_of(coding.upstream_log)[asked]
    first = sent["messages"][0]["content"]
    assert f"{RULE}\n\nMake proof.txt." in first and "<name>linter</name>" in first
    record = coding.json("reef records list -s coding")[0]
    assert (record["source"], record["adapter"], record["version"]) == ("agent", "terminus", 2)
    assert coding.checksums() == before
    refused = coding.sh(f"reef-terminus {coding.project}")
    assert refused.returncode == 1 and "is no Harbor task folder: it has no instruction.md" in refused.stderr
