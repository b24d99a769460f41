"""B51: on a fresh state every agent gets a harness at once, its wrapper finds the daemon, nothing in it is secret."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.harness import pypi
from reef.harness.adapter import load_adapter
from reef.harness.agents import agent_folder, lock_hash
from reef.paths import bundled
from tests.http.running import Home, Upstream

ADAPTERS = sorted(file.parent.name for file in bundled("adapters").glob("*/adapter.toml"))
SECRET = "hunter2-secret"
WORK_ON_A_TASK = ("terminus",)
"""Agents that start on the folder of a task and on nothing else."""
# In the place of each agent, of Node and of Python: it tells its environment and what the files of its home say.
PROGRAM = """#!/bin/sh
[ "$1" = -p ] && { echo "$0"; echo v24.0.0; exit; }
env
env | grep -v ^REEF_ | sed -n 's/^[A-Z_]*=//p' | grep "^$REEF_HOME/" | while read -r place; do
    [ ! -d "$place" ] || find "$place" -type f -size -64k -exec cat {} +
done
"""


def plant(home: Home, name: str, programs: Path) -> None:
    """Put the program where the adapter's agent would be installed."""
    adapter = load_adapter(name, home.paths)
    assert adapter.install is not None
    if adapter.install.kind == "ships":
        return
    folder = agent_folder(adapter, home.paths)
    program = folder / adapter.install.binary_path.replace("*", "any")
    for place in (program, pypi.program_of(folder), programs / "node", programs / "npm"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(PROGRAM)
        place.chmod(0o755)
    (folder / "installed.json").write_text(json.dumps({"lock": lock_hash(adapter)}))


@pytest.fixture(scope="module")
def fresh(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon that has just been started for the first time; every agent's program is where it would be installed."""
    folder = tmp_path_factory.mktemp("fresh")
    programs = folder / "programs"
    # Whatever would be fetched all the same is a failure, and not a slow test.
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9", "npm_config_registry": "http://127.0.0.1:9"}
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "REEF_UPSTREAM_API_KEY": SECRET, **nowhere}
    home = Home(folder, upstream.url, environ)
    for name in ADAPTERS:
        plant(home, name, programs)
    yield home.start()
    home.close()


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_agent_is_installed_on_a_fresh_state_and_finds_the_daemon(fresh: Home, tmp_path: Path, name: str) -> None:
    manifest = fresh.nobody.get("/reef/harness", params={"adapter": name}).json()
    assert manifest["version"] == 1
    for secret in (SECRET, fresh.key, fresh.url):
        assert secret not in json.dumps(manifest["files"])
    script = fresh.nobody.get("/reef/harness/install", params={"adapter": name})
    assert script.status_code == 200 and SECRET not in script.text and fresh.key not in script.text
    done = fresh.person.post("/reef/harness/install", json={"scenario": "default", "adapter": name}).text
    assert '"installed"' in done, done
    wrapper = fresh.paths.bin / f"reef-{name}"
    assert wrapper.is_file()
    install = load_adapter(name, fresh.paths).install
    if name not in WORK_ON_A_TASK and install is not None and install.kind != "ships":
        # The fake tells what the real one would have found.
        ended = subprocess.run(
            [wrapper], env=fresh.env, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=60
        )
        assert (ended.returncode, fresh.url in ended.stdout) == (0, True), ended.stdout + ended.stderr
        assert SECRET not in ended.stdout and fresh.key not in ended.stdout
