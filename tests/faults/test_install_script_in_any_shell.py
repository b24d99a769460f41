"""B57, B58, B59, B61: the install script works however it is started, and holds nothing of whoever fetched it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.running import ROOT, Home, Upstream

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
AGENT = "native"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter of reef's own that may be taken away."""
    folder = tmp_path_factory.mktemp("python") / "it's its own"
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "reef.pth").write_text("\n".join([str(ROOT), *ours]) + "\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def home(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[Home]:
    """A daemon of that interpreter, in a home whose name has a blank and an apostrophe."""
    folder = tmp_path_factory.mktemp("house") / "Ada's home"
    folder.mkdir()
    patch = pytest.MonkeyPatch()
    patch.setattr(sys, "executable", str(python))
    found = Home(folder, upstream.url).start()
    patch.undo()
    yield found
    found.close()


@pytest.fixture
def script(home: Home) -> Iterator[str]:
    """The script for `default`; what it installs is removed after the test."""
    yield fetched(home)
    home.person.post("/reef/harness/remove", json={"scenario": "default", "adapter": AGENT})


def fetched(home: Home, **headers: str) -> str:
    reply = home.nobody.get("/reef/harness/install", params={"adapter": AGENT}, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.text


def run(home: Home, argv: list[str], text: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """What a person's shell would run, with nothing of reef's in its environment."""
    around = {"HOME": home.env["HOME"], "PATH": "/usr/bin:/bin"} | env
    return subprocess.run(argv, input=text, env=around, cwd="/", capture_output=True, text=True, timeout=60)


def state(home: Home) -> dict[str, int]:
    """Every file of the install with the time of its last change."""
    folders = (home.paths.harness, home.paths.bin, home.paths.agents)
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return {str(file): file.stat().st_mtime_ns for file in files if file.name != ".lock"}


@pytest.mark.parametrize("shell", SHELLS)
def test_piped_as_a_file_and_with_arguments_it_does_the_same(home: Home, script: str, shell: str) -> None:
    file = home.folder / "the install.sh"
    file.write_text(script)
    said = []
    for argv in ([shell], [shell, str(file)], [shell, "-s", "--", "--prefix", "X"]):
        done = run(home, argv, None if str(file) in argv else script)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.removeprefix("already "))
        noted = "note: --prefix X is not used: everything goes into reef's own folders\n"
        assert done.stderr == (noted if "--prefix" in argv else "")
    assert len(set(said)) == 1
    assert said[0].endswith(f"start it with {home.paths.bin / f'reef-{AGENT}'}\n")


def test_a_second_run_writes_nothing_and_the_script_takes_it_all_away_again(home: Home, script: str) -> None:
    before = state(home)
    assert run(home, ["sh"], script).stdout.startswith("installed: v1 of scenario default for native in ")
    there = state(home)
    assert run(home, ["sh"], script).stdout.startswith("already installed: v1 ")
    assert state(home) == there != before
    gone = run(home, ["sh", "-s", "--", "--uninstall"], script)
    folder, wrapper = home.paths.harness / "default" / AGENT, home.paths.bin / f"reef-{AGENT}"
    assert (gone.returncode, gone.stdout) == (0, f"removed {folder}\nremoved {wrapper}\n"), gone.stderr
    assert state(home) == before and not home.paths.last_install.exists()
    again = run(home, ["sh", "-s", "--", "--uninstall"], script)
    nothing = "error: no harness of scenario default is installed for native\nhint: reef agents list\n"
    assert (again.returncode, again.stderr) == (1, nothing)


def test_a_wrapper_finds_its_interpreter_in_any_shell_and_says_when_it_is_gone(
    home: Home, script: str, python: Path
) -> None:
    assert run(home, ["sh"], script).returncode == 0
    wrapper = home.paths.bin / f"reef-{AGENT}"
    assert run(home, [str(wrapper), "--version"]).returncode == 0
    elsewhere = python.with_name("renamed")
    python.rename(elsewhere)
    try:
        for done in (run(home, [str(wrapper), "--version"]), run(home, ["sh"], script)):
            assert done.returncode == 1 and done.stdout == ""
            assert done.stderr == f"error: the Python of this reef is gone: {python}\nhint: ./install.sh\n"
        # Another reef's install repairs it: its own interpreter is in the wrapper then.
        wrapper.write_text(wrapper.read_text().replace(str(python).replace("'", "'\"'\"'"), "/nowhere/python"))
    finally:
        elsewhere.rename(python)
    assert run(home, [str(wrapper), "--version"]).returncode == 1
    assert run(home, ["sh"], script).returncode == 0
    assert run(home, [str(wrapper), "--version"]).returncode == 0
    there = state(home)
    assert run(home, ["sh"], script).returncode == 0 and state(home) == there


def test_no_program_of_the_path_is_asked_for_anything(home: Home, script: str, tmp_path: Path) -> None:
    for name in ("python", "python3", "pip", "pip3", "uv", "npm", "node", "reef"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/asked\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    before = set(Path(home.env["HOME"]).rglob("*"))
    done = run(home, ["sh"], script, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "asked").exists()
    assert set(Path(home.env["HOME"]).rglob("*")) == before


def test_no_header_of_the_request_is_in_the_script(home: Home, script: str) -> None:
    forged = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "forwarded": "host=evil.example"}
    assert fetched(home, **forged) == script
    assert home.nobody.get("/reef/harness/install", headers={"host": "evil.example"}).status_code == 403


def test_a_script_of_an_unknown_scenario_is_not_made(home: Home) -> None:
    reply = home.nobody.get("/reef/harness/install", params={"adapter": AGENT}, headers={"x-reef-scenario": "defalt"})
    assert reply.status_code == 404 and "default" in reply.text
    assert len(home.nobody.get("/reef/scenarios").json()["scenarios"]) == 1


def test_what_is_running_is_not_removed(home: Home, script: str) -> None:
    assert run(home, ["sh"], script).returncode == 0
    body = {"scenario": "default", "adapter": AGENT, "version": 1, "cwd": "/tmp", "pid": os.getpid()}
    session = home.person.post("/reef/sessions", json=body).json()
    wish = {"scenario": "default", "adapter": AGENT}
    refused = home.person.post("/reef/harness/remove", json=wish)
    assert refused.status_code == 409 and "reef-native runs on scenario default" in refused.text
    assert home.person.post("/reef/harness/remove", json=wish | {"adapter": "../default"}).status_code == 400
    assert home.nobody.post("/reef/harness/remove", json=wish).status_code in (401, 403)
    assert home.person.delete(f"/reef/sessions/{session['session']}").status_code == 200
    done = home.person.post("/reef/harness/remove", json=wish)
    assert done.status_code == 200 and done.json()["version"] == 1
