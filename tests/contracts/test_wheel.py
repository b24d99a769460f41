"""The wheel holds everything that a checkout has at run time, and works without one."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.argv[0] = 'reef'; "


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built without a network."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=100,
    )
    (built,) = out.glob("reef_coding_agents-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel in a folder."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(unpacked: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that sees the wheel's content before the checkout."""
    return subprocess.run(
        [sys.executable, "-c", RUN + code, str(unpacked), *arguments],
        cwd=unpacked,
        capture_output=True,
        text=True,
        timeout=60,
    )


def shipped(kind: str) -> set[str]:
    """Every file of a plug-in folder that git would take in, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", kind]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return {name for name in found if name and (ROOT / name).is_file()}


def test_the_wheel_holds_recipes_adapters_pins_and_installer(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"reef/{name}" for kind in ("recipes", "adapters") for name in shipped(kind)}
    assert wanted | {"reef/constraints.txt", "reef/install.sh", "reef/py.typed"} | shipped("reef") <= names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith(("reef/", "reef_coding_agents-"))]
    assert strange == []
    assert [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".db"))] == []


def test_the_wheel_names_its_licence_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (facts,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(facts).decode()
        commands = archive.read(facts.replace("METADATA", "entry_points.txt")).decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "reef = reef.cli.app:main" in commands


def test_reef_help_runs_from_the_wheel(unpacked: Path) -> None:
    ran = run(unpacked, "from reef.cli.app import main; sys.exit(main())", "--help")
    assert ran.returncode == 0, ran.stderr
    assert "quickstart" in ran.stdout


@pytest.mark.parametrize("kind", ["recipes", "adapters"])
def test_plug_ins_are_found_inside_the_wheel(unpacked: Path, kind: str) -> None:
    ran = run(unpacked, f"from reef import paths; print(paths.bundled({kind!r}))")
    assert Path(ran.stdout.strip()) == unpacked / "reef" / kind, ran.stderr
