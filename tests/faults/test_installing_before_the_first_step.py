"""B51: on a fresh state every agent gets a harness at once, its wrapper finds the daemon, nothing in it is secret."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.harness import pypi
from reef.harness.adapter import load_adapter
from reef.harness.agents import agent_folder, lock_hash
from reef.paths import bundled
from tests.http.running import Home

ADAPTERS = sorted(file.parent.name for file in bundled("adapters").glob("*/adapter.toml"))
WITHOUT_WRAPPER = ("terminus",)
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


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_agent_is_installed_on_a_fresh_state_and_finds_the_daemon(
    new_home: Callable[..., Home], tmp_path: Path, name: str
) -> None:
    path = f"{tmp_path / 'programs'}:{os.environ['PATH']}"
    # Whatever would be fetched all the same is a failure, and not a slow test.
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9", "npm_config_registry": "http://127.0.0.1:9"}
    home = new_home(environ={"PATH": path, "REEF_UPSTREAM_API_KEY": "hunter2-secret", **nowhere})
    plant(home, name, tmp_path / "programs")
    home.start()
    manifest = home.nobody.get("/reef/harness", params={"adapter": name}).json()
    assert manifest["version"] == 1
    for secret in ("hunter2-secret", home.key, home.url):
        assert secret not in json.dumps(manifest["files"])
    script = home.nobody.get("/reef/harness/install", params={"adapter": name})
    assert script.status_code == 200 and "hunter2-secret" not in script.text and home.key not in script.text
    done = home.person.post("/reef/harness/install", json={"scenario": "default", "adapter": name}).text
    assert '"installed"' in done, done
    wrapper = home.paths.bin / f"reef-{name}"
    assert wrapper.is_file() is (name not in WITHOUT_WRAPPER)
    if (tmp_path / "programs").is_dir() and wrapper.is_file():
        # The fake tells what the real one would have found.
        ended = subprocess.run(
            [wrapper], env=home.env, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=60
        )
        assert (ended.returncode, home.url in ended.stdout) == (0, True), ended.stdout + ended.stderr
        assert "hunter2-secret" not in ended.stdout and home.key not in ended.stdout
