"""The shell scripts are plain POSIX where they say so, and none runs a byte before it was read whole."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reef.cli.firstrun import part_line

ROOT = Path(__file__).resolve().parents[2]
INSTALLER = ROOT / "install.sh"


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_installer_parses(shell: str) -> None:
    if shutil.which(shell) is None:
        shell = "sh"
    ran = subprocess.run([shell, "-n", str(INSTALLER)], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_ci_script_parses() -> None:
    ran = subprocess.run(["bash", "-n", str(ROOT / ".ci/run")], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_installer_does_everything_in_functions_called_on_the_last_line() -> None:
    lines = INSTALLER.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/bin/sh"
    assert lines[-1] == 'main "$@"'
    depth, outside, document = 0, [], False
    for line in lines[1:-1]:
        if document:
            document = line != "PYTHON"
        elif line == "}":
            depth -= 1
        elif line.endswith("() {"):
            depth += 1
        elif depth == 0 and line.strip() and not line.startswith("#"):
            outside.append(line)
        document = document or "<<'PYTHON'" in line
    assert outside == ["set -eu"]


def test_the_installer_never_asks_and_never_becomes_root() -> None:
    text = INSTALLER.read_text(encoding="utf-8")
    commands = [
        line
        for line in text.splitlines()
        if "sudo" in line and not line.strip().startswith(("#", "if has", "elif has"))
    ]
    assert commands == []
    assert "\n    read " not in text


def test_a_truncated_installer_does_nothing(tmp_path: Path) -> None:
    text = INSTALLER.read_text(encoding="utf-8")
    cut = tmp_path / "install.sh"
    cut.write_text(text[: text.rindex("main ")])
    ran = subprocess.run(["sh", str(cut), "uninstall", "--purge"], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "arguments",
    [["frobnicate"], ["quickstart", "--fast"], ["uninstall", "--all"], ["install", "x"], ["--with", "wings"]],
)
def test_a_mistyped_command_of_the_installer_shows_the_right_ones(arguments: list[str]) -> None:
    ran = subprocess.run([str(INSTALLER), *arguments], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0] == f"error: install.sh {' '.join(arguments)} is not understood"
    assert "uninstall [--purge]" in ran.stderr


def test_the_installer_names_a_python_that_is_too_old(tmp_path: Path) -> None:
    ran = _with_programs(
        tmp_path, {"python3": '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n', "git": ""}
    )
    assert ran.returncode == 1
    assert "needs Python 3.11 or newer; this machine has Python 3.9.2" in ran.stderr
    assert "\nhint: " in ran.stderr


def test_the_installer_names_a_missing_git_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = _with_programs(tmp_path, {})
    assert ran.returncode == 1
    assert "git is not installed" in ran.stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_the_installer_refuses_the_home_folder_itself_as_its_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ran = subprocess.run(
        [str(INSTALLER), "uninstall", "--purge"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "REEF_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "needs a folder of its own" in ran.stderr
    assert home.is_dir()


PYTHON = """#!/bin/sh
case "$1 $2" in
    "-m venv")
        mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/reef" ;;
    "-m pip") echo "$RUSTUP_HOME" >>"$HOME/../rustup"; echo "$*" >>"$HOME/../pip"; sleep 1.2 ;;
esac
"""
"""A Python that makes an empty environment, and whose pip writes down what it is told and where rustup would be."""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine on which an install takes no network and two seconds."""
    folder = tmp_path / "programs"
    folder.mkdir()
    names = "awk cat chmod cksum cp date dirname du find grep ln mkdir readlink rm rmdir sed sleep sort tail tr"
    for name in names.split():
        (folder / name).symlink_to(shutil.which(name) or "/nonexistent")
    for name, text in {"python3": PYTHON, "git": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (tmp_path / "person").mkdir()
    return {"PATH": str(folder), "HOME": str(tmp_path / "person")}


def installer(machine: dict[str, str], *arguments: str) -> list[str]:
    """The lines that the installer prints into a pipe."""
    ran = subprocess.run(["/bin/sh", str(INSTALLER), *arguments], env=machine, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def on_terminal(machine: dict[str, str], *arguments: str) -> str:
    """Everything that the installer sends to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["/bin/sh", str(INSTALLER), *arguments],
        env=machine | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as child:
        os.close(theirs)
        got = b""
        while block := _read(ours):
            got += block
        assert child.wait() == 0, got
    os.close(ours)
    return got.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_an_install_counts_seconds_on_a_terminal_and_leaves_a_line_in_the_quickstarts_columns(
    machine: dict[str, str],
) -> None:
    shown = on_terminal(machine)
    assert "(first time: about 1 min)" in shown
    assert re.search(r"\r  … python environment +[1-9] s", shown)
    (line,) = re.findall(r"  ✓ python environment.*", shown.replace("\r", "\n"))
    below = part_line("embedded model", 7, 98_000_000)
    assert (line.index(" s "), line.index(" MB")) == (below.index(" s "), below.index(" MB"))
    assert "\x1b" not in "".join(installer(machine))


def test_no_pip_of_the_installer_leaves_a_rustup_folder_in_the_home(machine: dict[str, str]) -> None:
    installer(machine)
    home = Path(machine["HOME"])
    named = set((home.parent / "rustup").read_text().splitlines())
    assert named == {str(home / ".cache/reef/rustup")}


def test_an_extra_that_was_asked_for_once_stays_until_the_programs_are_removed(machine: dict[str, str]) -> None:
    told = Path(machine["HOME"]).parent / "pip"
    installer(machine)
    assert "[providers]" not in told.read_text()
    installer(machine, "--with", "providers")
    assert told.read_text().splitlines()[-1].endswith("[providers]")
    venv = Path(machine["HOME"]) / ".local/share/reef/venv"
    for again in ((), ("--with", "providers")):
        assert "installed in" in installer(machine, *again)[0]
    (venv / "source").unlink()
    installer(machine)
    assert told.read_text().splitlines()[-1].endswith("[providers]")
    installer(machine, "uninstall")
    installer(machine)
    assert not told.read_text().splitlines()[-1].endswith("[providers]")


def test_an_uninstall_says_what_it_removes_before_and_after_and_says_it_once(machine: dict[str, str]) -> None:
    installer(machine)
    venv = "~/.local/share/reef/venv"
    first = installer(machine, "uninstall")
    assert first.index(f"removing {venv}") < first.index(f"removed {venv}")
    again = installer(machine, "uninstall")
    assert again[0] == "reef's programs are not installed in ~/.local/share/reef"
    assert not [line for line in again if line.startswith("remov")]
    purged = installer(machine, "uninstall", "--purge")
    assert "removed ~/.local/share/reef" in purged
    assert list(Path(machine["HOME"]).iterdir()) == []


def _with_programs(tmp_path: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the installer where PATH holds the plain tools and these programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    plain = [
        "awk",
        "cat",
        "cksum",
        "date",
        "dirname",
        "du",
        "find",
        "id",
        "mkdir",
        "readlink",
        "rm",
        "sed",
        "sort",
        "tr",
    ]
    for name in plain:
        (folder / name).symlink_to(shutil.which(name) or "/nonexistent")
    for name, text in programs.items():
        (folder / name).write_text(text or "#!/bin/sh\n")
        (folder / name).chmod(0o755)
    env = {"PATH": str(folder), "HOME": str(tmp_path / "home")}
    return subprocess.run(["/bin/sh", str(INSTALLER)], env=env, capture_output=True, text=True)
