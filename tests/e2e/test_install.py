"""From nothing to a first improved version and back to nothing: the installer and the quickstart in an empty HOME."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.home import Home, linked
from tests.e2e.room import ROOT, Room

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(600)]

KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
RULE = "Always answer in one short sentence."


def installer_environment(home: Path) -> dict[str, str]:
    """What a fresh login has, and where this machine finds packages."""
    found = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PIP_")}
    return found | {"HOME": str(home), "PATH": _without_this_environment(found["PATH"])}


def _without_this_environment(path: str) -> str:
    own = str(Path(sys.executable).parent)
    return os.pathsep.join(part for part in path.split(os.pathsep) if part != own)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this tree as a clone would have it."""
    target = tmp_path / "a clone"
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def install(
    script: Path, home: Path, *arguments: str, timeout: float = 300, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run an installer with a network."""
    return subprocess.run(
        [str(script), *arguments],
        cwd=script.parent,
        env=installer_environment(home) | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def left_in(home: Path) -> set[str]:
    """What is in a HOME besides the caches of pip and uv."""
    caches = (home / ".cache" / "pip", home / ".cache" / "uv")
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if not any(path == cache or cache in path.parents or path in cache.parents for cache in caches)
    }


def test_from_nothing_to_a_first_version_and_back_to_nothing(
    checkout: Path, tmp_path: Path, room: Room, fetched: Path
) -> None:
    person = Home(tmp_path / "a person", room)
    installer = shlex.quote(str(checkout / "install.sh"))
    own = person.checksums()
    listing = left_in(person.folder)
    person.env |= installer_environment(person.folder)
    done = install(checkout / "install.sh", person.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is not on PATH" in done.stdout
    linked(fetched / "agents", person.data / "agents")
    linked(fetched / "models", person.data / "models")

    first = person.ok(f"{installer} quickstart", timeout=200)
    for words in ("What is the capital of France?", "receipt ", "v1 → v2", f"+ {RULE}", "system › …"):
        assert words in first, first
    again = person.ok(f"{installer} quickstart", timeout=200)
    assert "so nothing is asked" in again
    assert "python environment" not in again
    env = {"PATH": f"{person.bin}:{person.env['PATH']}"}
    names = [row["name"] for row in person.json("reef scenarios list", **env)]
    assert sorted(names) == ["default", "quickstart"]
    assert [row["version"] for row in person.json("reef versions list -s quickstart", **env)] == [2, 1]
    screen = tui_screen(person, env, 80, 24), tui_screen(person, env, 120, 40)
    assert all("Say hello." in text and "What is the cap" in text for text in screen), "\n".join(screen)

    for path in (person.data / "harness" / "quickstart" / "pi").rglob("AGENTS.md"):
        path.write_text(path.read_text().replace(RULE, "Always answer at great length."))
    swapped = person.sh(f"{installer} quickstart --prove", timeout=200)
    assert swapped.returncode == 5, swapped.stdout + swapped.stderr

    gone = person.sh(f"{installer} uninstall --purge")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert person.checksums() == own
    assert left_in(person.folder) == listing


def tui_screen(person: Home, env: dict[str, str], columns: int, lines: int) -> str:
    """What the traces of `reef tui` show in a terminal of that size, as text."""
    socket = person.folder.parent / f"tmux-{columns}"
    tmux = f"tmux -S {socket}"
    person.ok(f"{tmux} new-session -d -x {columns} -y {lines} 'reef tui'", TERM="xterm-256color", **env)
    shown = ""
    for _ in range(40):
        shown = person.ok(f"{tmux} send-keys 2; sleep 0.25; {tmux} capture-pane -p")
        if "Say hello." in shown:
            break
    person.sh(f"{tmux} send-keys q; sleep 1; {tmux} kill-server")
    return shown


def test_the_installer_works_from_a_wheel(checkout: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    script = tmp_path / "unpacked" / "reef" / "install.sh"
    script.chmod(0o755)
    home = tmp_path / "a home"
    done = install(script, home)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(tmp_path / "unpacked")
    shutil.rmtree(checkout)
    reef = home / ".local" / "bin" / "reef"
    listed = subprocess.run([reef, "recipes", "list"], env={"HOME": str(home)}, capture_output=True, text=True)
    assert listed.returncode in (0, 3), listed.stderr
    (shipped,) = (home / ".local/share/reef/venv").rglob("reef/install.sh")
    again = install(Path(shutil.copy2(shipped, tmp_path / "kept.sh")), home, "uninstall", "--purge")
    assert again.returncode == 0, again.stderr
    assert left_in(home) == set()


def test_an_install_that_was_cut_off_is_repaired_and_a_whole_one_is_left_alone(checkout: Path, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    env = {"REEF_HOME": str(tmp_path / "a place"), "REEF_BIN_DIR": str(tmp_path / "commands")}
    assert install(checkout / "install.sh", home, **env).returncode == 0
    assert "installed in" in install(checkout / "install.sh", home, timeout=10, **env).stdout
    venv = tmp_path / "a place" / "data" / "venv"
    (venv / "bin" / "python").unlink()
    repaired = install(checkout / "install.sh", home, **env)
    assert repaired.returncode == 0, repaired.stderr
    assert "python environment" in repaired.stdout
    version = subprocess.run([tmp_path / "commands" / "reef", "--version"], capture_output=True, text=True)
    assert version.stdout.startswith("reef ")
    assert install(checkout / "install.sh", home, "uninstall", "--purge", **env).returncode == 0
    assert left_in(home) == set()
    assert not (tmp_path / "a place").exists()
    assert not (tmp_path / "commands").exists()


def test_another_program_named_reef_is_not_replaced(checkout: Path, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    commands = home / ".local" / "bin"
    commands.mkdir(parents=True)
    (commands / "reef").write_text("#!/bin/sh\necho mine\n")
    done = install(checkout / "install.sh", home)
    assert done.returncode == 1
    assert "is there already and is not this reef" in done.stderr
    assert (commands / "reef").read_text() == "#!/bin/sh\necho mine\n"
    assert left_in(home) == {".local", ".local/bin", ".local/bin/reef"}


def test_uv_is_used_when_it_is_there(checkout: Path, tmp_path: Path, need_uv: Callable[[], str]) -> None:
    uv = need_uv()
    home = tmp_path / "a home"
    path = f"{Path(uv).parent}:{_without_this_environment(os.environ['PATH'])}"
    done = install(checkout / "install.sh", home, PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (home / ".local/share/reef/venv/bin/pip").exists()
    assert "uv" in (home / ".local/share/reef/venv/pyvenv.cfg").read_text()


@pytest.fixture
def need_uv() -> Callable[[], str]:
    """The path of uv; the test is skipped without it, because reef does not need it."""

    def need() -> str:
        found = shutil.which("uv")
        if found is None:
            pytest.skip("uv is not installed, and reef does not need it")
        return found

    return need
