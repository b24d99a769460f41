"""An agent that reef runs never changes what the person's own agent has, whatever state those files are in."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.harness.adapter import adapter_names, base_of_all, fitting, load_adapter, render
from reef.harness.adapter_file import Adapter
from reef.harness.install import install_tree
from reef.paths import Paths
from tests.fakes.agent_place import place_program
from tests.http.running import Home

SETTINGS = {
    "settings.json": b'{\n  "theme": "dark", "x/y": "a\\/b", "unknown": [1, 2,],\n}\n',
    "config.toml": b'# mine\nmodel = "other" # not reef\n[unheard.of]\nslash = "/"\n',
    "config.yaml": b"model: {default: other}\n\tbroken: [\n",
    "opencode.json": b'// a comment\n{"model": "other/one"}\n',
    "AGENTS.md": b"Use tabs.\n",
}
"""Comments, keys that nobody knows, escaped slashes, and files that cannot be read."""
PROGRAM = """
import os, pathlib, sys
# As agents do: a session and a setting beside what they were given.
for name, value in sorted(os.environ.items()):
    if value.startswith(os.environ["REEF_TREE"].removesuffix("tree")) and not name.startswith("REEF_"):
        folder = pathlib.Path(value)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "written-by-the-agent").write_text(name)
        print("wrote", name)
"""


def fill(adapter: Adapter, person: Path) -> dict[str, bytes | str]:
    """Put hostile settings where the person's own agent keeps its own, one as a link to a folder of dotfiles."""
    dotfiles = person / "dotfiles" / adapter.name
    dotfiles.mkdir(parents=True)
    for place in adapter.own.places:
        folder = Path(place.replace("~", str(person), 1))
        folder.mkdir(parents=True)
        for name, content in SETTINGS.items():
            (folder / name).write_bytes(content)
        (dotfiles / "linked.json").write_bytes(SETTINGS["settings.json"])
        (folder / "linked.json").symlink_to(dotfiles / "linked.json")
    return look(person)


def look(person: Path) -> dict[str, bytes | str]:
    """Every file of the person's by its hash, and every link by its target."""
    found: dict[str, bytes | str] = {}
    for file in person.rglob("*"):
        name = str(file.relative_to(person))
        if file.is_symlink():
            found[name] = str(file.readlink())
        elif file.is_file():
            found[name] = hashlib.sha256(file.read_bytes()).digest()
    return found


def run(home: Home, name: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "reef.harness.wrapper", name, *arguments]
    return subprocess.run(
        command,
        env=home.env | environ,
        cwd=home.folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def installed(adapter: Adapter, paths: Paths) -> Adapter:
    """`adapter` with a fake program, and the base of all as its installed version."""
    place_program(adapter, paths, PROGRAM)
    kept, _ = fitting(base_of_all(paths), adapter)
    install_tree(paths, "default", adapter, 1, render(kept, adapter), "r1", "c1")
    return adapter


@pytest.mark.timeout(300)
def test_no_agent_touches_the_persons_own_files_and_none_is_left_pointing_at_a_dead_daemon(
    new_home: Callable[..., Home],
) -> None:
    home = new_home()
    person = Path(home.env["HOME"])
    known = [load_adapter(name, home.paths) for name in adapter_names(home.paths)]
    adapters = [installed(adapter, home.paths) for adapter in known if adapter.own.places]
    assert {"pi", "codex", "opencode", "hermes"} <= {adapter.name for adapter in adapters}
    before = {}
    for adapter in adapters:
        before = fill(adapter, person)
    home.start()
    for adapter in adapters:
        for mode in ([], ["--alongside"]):
            if mode and adapter.alongside is None:
                continue
            done = run(home, adapter.name, *mode)
            assert done.returncode == 0, f"{adapter.name} {mode}: {done.stderr}"
            if not mode:
                assert "wrote" in done.stdout, f"{adapter.name} has no home of its own: {done.stdout}"
        assert look(person) == before, adapter.name
    assert home.process is not None
    os.kill(home.process.pid, signal.SIGKILL)
    home.process.wait()
    for adapter in adapters:
        done = run(home, adapter.name, REEF_AUTOSTART="false")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == "error: the daemon is not running\nhint: reef up\n"
    assert look(person) == before
