"""The install script: safe when cut, the same under every shell, its words never from a request."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reef.harness.script import install_script
from reef.paths import Paths

# Stands for the interpreter: shows what the script starts, and with which variables.
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$@" "$REEF_HOME" "$REEF_BIN_DIR" >> "$0.log"\ncat >> "$0.log"\n'


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder whose name has a space and an apostrophe, with a recording interpreter in it."""
    folder = tmp_path / "it's a home"
    folder.mkdir()
    python = folder / "python"
    python.write_text(RECORDER)
    python.chmod(0o755)
    return folder


def script_for(folder: Path) -> str:
    places = Paths.from_environ({"HOME": str(folder), "REEF_HOME": str(folder / "reef")})
    return install_script(places, "coding", "pi", python=str(folder / "python"))


def run(argv: list[str], folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    return subprocess.run(argv, input=text, env=env, capture_output=True, text=True, timeout=60, check=False)


SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("way", ["piped", "file", "arguments"])
def test_it_starts_the_install_the_same_way_from_a_pipe_and_a_file(odd: Path, shell: str, way: str) -> None:
    text = script_for(odd)
    (odd / "install.sh").write_text(text)
    argv = {
        "piped": [shell],
        "file": [shell, str(odd / "install.sh")],
        "arguments": [shell, "-s", "--", "--prefix", "X"],
    }
    done = run(argv[way], odd, None if way == "file" else text)
    assert (done.returncode, done.stderr) == (0, "")
    log = (odd / "python.log").read_text().splitlines()
    more = ["--prefix", "X"] if way == "arguments" else []
    places = [str(odd / "reef"), str(odd / ".local/bin")]
    assert log == ["-P", "-m", "reef.harness.script", "coding", "pi", *more, *places]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_that_is_cut_at_any_byte_starts_nothing(odd: Path, shell: str) -> None:
    text = script_for(odd).rstrip("\n")
    env = {"HOME": str(odd), "PATH": os.environ["PATH"]}

    def cut(end: int) -> None:
        subprocess.run(
            [shell, "-s", "--", "--uninstall"], input=text[:end].encode(), env=env, stderr=subprocess.DEVNULL
        )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(cut, range(len(text))))
    assert not (odd / "python.log").exists()
    cut(len(text))
    assert "--uninstall" in (odd / "python.log").read_text()


def test_it_is_clean_under_shellcheck_and_holds_no_address(odd: Path) -> None:
    text = script_for(odd)
    assert "http" not in text
    checker = shutil.which("shellcheck")
    if checker is not None:
        done = run([checker, "-"], odd, text)
        assert done.returncode == 0, done.stdout


def test_a_missing_interpreter_is_one_line_and_nothing_else(odd: Path) -> None:
    (odd / "python").unlink()
    done = run(["sh"], odd, script_for(odd))
    assert done.returncode == 1
    assert done.stderr == f"error: the Python of this reef is gone: {odd}/python\nhint: ./install.sh\n"


def test_the_program_behind_it_says_when_no_daemon_runs(paths: Paths) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.harness.script", "coding", "pi"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "error: the daemon is not running\nhint: reef up\n")


def test_an_agents_session_cannot_install(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_SESSION", "reef-x")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.harness.script", "coding", "pi"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert "an agent's session cannot install" in done.stderr
