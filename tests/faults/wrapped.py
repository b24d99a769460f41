"""A daemon and, in the place of every coding agent, a program that says what it was given."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from reef.client import Client
from reef.harness.adapter import known_adapters, load_adapter
from reef.harness.adapter_file import Adapter
from reef.paths import Paths
from tests.fakes.agent_place import place_program
from tests.http.running import Home

SAYS_WHAT_IT_GOT = """
import json, os, sys, time
print(json.dumps({"env": dict(os.environ), "argv": sys.argv[1:], "pid": os.getpid()}), flush=True)
if "--stay" in sys.argv:
    time.sleep(120)
"""
"""One line of JSON; with `--stay` it does not end by itself."""
AGENTS = [
    adapter.name
    for _, adapter in known_adapters(Paths.from_environ({"REEF_HOME": "/nowhere"}))
    if isinstance(adapter, Adapter)
    and adapter.install
    and adapter.install.kind != "ships"
    and not adapter.install.runner
]
"""The agents that reef wraps and whose program is neither a part of reef nor the person's to install."""


def furnish(home: Home) -> Home:
    """Install the base of `default` for every agent, each with a program of ours in its place."""
    for name in AGENTS:
        place_program(load_adapter(name, home.paths), home.paths, SAYS_WHAT_IT_GOT)
        with Client.connect(home.paths, start=False) as client:
            list(client.install_harness("default", name, 1))
    return home


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "reef.harness.wrapper", name, *arguments]


def run(home: Home, name: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The wrapper of an agent, outside of any session and without a terminal."""
    return subprocess.run(
        command(name, *arguments), env=home.env | environ, cwd=home.folder, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False, start_new_session=True,
    )  # fmt: skip


def got(home: Home, name: str, *arguments: str, **environ: str) -> dict[str, Any]:
    """What the agent was given."""
    done = run(home, name, *arguments, **environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return found


def checksums(folder: Path) -> dict[str, str]:
    """Every file below `folder` with its hash, links as links."""
    return {
        str(place.relative_to(folder)): f"-> {place.readlink()}"
        if place.is_symlink()
        else hashlib.sha256(place.read_bytes()).hexdigest()
        for place in sorted(folder.rglob("*"))
        if place.is_symlink() or place.is_file()
    }


def contents(folder: Path) -> dict[str, str]:
    """The text of every file below `folder`, none of it through a link."""
    return {
        str(place.relative_to(folder)): place.read_bytes().decode("utf-8", "replace")
        for place in sorted(folder.rglob("*"))
        if place.is_file() and not place.is_symlink()
    }
