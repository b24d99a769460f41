"""Agents from the Python package registry: an environment of their own, from wheels that have the hash of the lock."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.errors import Failed, NotFound
from reef.harness import pypi
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.agents import agent_argv, agent_folder, install_agent, is_installed
from reef.paths import Paths
from tests.fakes.wheels import wheel

ADAPTER = """
name = "small"
title = "Small"
binary = "small"
dialect = "chat"
home-variable = "SMALL_HOME"
session-header = "x-reef-session"

[install]
kind = "pypi"
package = "small-agent"
version = "1.2"
binary-path = "bin/small"
python = "{python}"
{below}

[run]
headless = ["{{prompt}}"]
version = ["--version"]

[render]
rules = "RULES.md"
"""
PROGRAM = 'import os, sys\n\ndef main():\n    print("small 1.2", *sys.argv[1:], os.environ.get("PYTHONPATH"))\n'


class Registry:
    """A folder of wheels, an adapter that is installed from it, and what the installers are told."""

    def __init__(self, folder: Path, paths: Paths) -> None:
        self.paths = paths
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.place = paths.config / "adapters" / "small"
        self.place.mkdir(parents=True)
        self.environ = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        self.lines: list[str] = []
        self.write()
        lock = wheel(self.wheels, "small_agent", "1.2", {"small_agent.py": PROGRAM}, "small = small_agent:main")
        self.lock(lock + wheel(self.wheels, "small_part", "0.1", {"small_part.py": "x = 1\n"}))

    def write(self, python: str = "3.11", below: str = "") -> None:
        (self.place / "adapter.toml").write_text(ADAPTER.format(python=python, below=below))

    def lock(self, text: str) -> None:
        (self.place / pypi.LOCK).write_text(text)

    @property
    def adapter(self) -> Adapter:
        return load_adapter("small", self.paths)

    def install(self) -> bool:
        return install_agent(self.adapter, self.paths, self.lines.append, self.environ)

    def nothing_is_left(self) -> bool:
        folder = self.paths.agents / "small"
        return not is_installed(self.adapter, self.paths) and (not folder.exists() or list(folder.iterdir()) == [])


@pytest.fixture
def registry(tmp_path: Path, paths: Paths) -> Iterator[Registry]:
    yield Registry(tmp_path, paths)


def test_an_agent_is_installed_from_wheels_and_runs_where_it_was_moved_to(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFound, match=r"Small 1\.2 is not installed"):
        agent_argv(registry.adapter, registry.paths)
    left = registry.paths.agents / "small" / ".1.2.99"
    left.mkdir(parents=True)
    assert registry.install() and not registry.install()
    version = ".".join(map(str, sys.version_info[:3]))
    assert registry.lines[0] == f"installing Small 1.2 (2 packages, each by its hash, Python {version})"
    assert registry.lines[-1].startswith("Small 1.2 is installed (") and not left.exists()
    folder = agent_folder(registry.adapter, registry.paths)
    assert json.loads((folder / "installed.json").read_text())["python"] == version
    # What the shell says of Python is for the person's own programs, and reaches those that the agent starts.
    monkeypatch.setenv("PYTHONPATH", "/people/me")
    ran = subprocess.run([*agent_argv(registry.adapter, registry.paths), "hi"], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("small 1.2 hi /people/me\n", "")
    by_name = subprocess.run([str(folder / "bin" / "small")], capture_output=True, text=True)
    assert by_name.stdout == "small 1.2 /people/me\n"
    # A Python that is gone takes the environment with it.
    (folder / "bin" / "python").unlink()
    assert not is_installed(registry.adapter, registry.paths)


def test_a_wheel_with_another_hash_is_refused_and_leaves_nothing(registry: Registry) -> None:
    registry.lock(f"small_agent==1.2 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(Failed, match=r"Small 1\.2 cannot be installed: a package does not have the hash of the lock"):
        registry.install()
    assert registry.nothing_is_left()


def test_a_package_that_would_have_to_be_built_is_not_taken(registry: Registry, tmp_path: Path) -> None:
    source = registry.wheels / "built-1.0.tar.gz"
    source.write_bytes(b"x")
    registry.lock(f"built==1.0 --hash=sha256:{hashlib.sha256(b'x').hexdigest()}\n")
    with pytest.raises(Failed, match=r"No matching distribution found for built==1\.0"):
        registry.install()
    assert registry.nothing_is_left()


def test_an_agent_that_no_python_here_can_run_is_refused_with_the_versions_there_are(registry: Registry) -> None:
    registry.environ["PATH"] = "/nowhere"
    here = ".".join(map(str, sys.version_info[:3]))
    registry.write(python="3.99")
    with pytest.raises(Failed) as failed:
        registry.install()
    assert failed.value.message == (
        f"Small 1.2 cannot be installed: it needs Python 3.99 or later, this machine has {here}"
    )
    assert failed.value.hint == "install python3.99 beside it, then: reef agents add small"
    registry.write(python="3.0", below='python-below = "3.1"')
    with pytest.raises(Failed, match=r"it needs Python 3\.0 or later and before 3\.1, this machine has"):
        registry.install()
    assert registry.nothing_is_left()


def test_a_fitting_python_of_the_machine_is_used_where_reefs_own_does_not_fit(
    registry: Registry, tmp_path: Path
) -> None:
    other = tmp_path / "bin" / "python3.12"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 3.99.4\n")
    other.chmod(0o755)
    registry.write(python="3.99")
    spec = registry.adapter.install
    assert spec is not None
    found, _ = pypi.find_python(spec, {"PATH": str(other.parent)})
    assert found == pypi.Python(other, "3.99.4")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("error: Failed to fetch: x\n  Caused by: dns error", "the package registry does not answer (dns error)"),
        ("SSLError(CERTIFICATE_VERIFY_FAILED)", "certificate is signed by nobody that this machine knows"),
        ("invalid peer certificate: UnknownIssuer", "certificate is signed by nobody that this machine knows"),
        ("error: Hash mismatch for `x`", "a package does not have the hash of the lock file"),
        ("error: it is odd\nmore", "error: it is odd"),
        ("", "the installer gave no reason"),
    ],
)
def test_what_uv_says_becomes_one_sentence(registry: Registry, tmp_path: Path, said: str, told: str) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/heard\nprintf "%s\\n" "{said}" >&2\nexit 2\n')
    uv.chmod(0o755)
    registry.environ["PATH"] = f"{uv.parent}:/usr/bin:/bin"
    with pytest.raises(Failed) as failed:
        registry.install()
    assert failed.value.message.startswith("Small 1.2 cannot be installed: ") and told in failed.value.message
    heard = (tmp_path / "heard").read_text()
    assert "--require-hashes --no-deps --only-binary :all:" in heard and str(registry.paths.cache / "uv") in heard
    assert registry.nothing_is_left()


def test_a_registry_that_does_not_answer_is_told_within_seconds(registry: Registry) -> None:
    registry.environ = {"PATH": "/usr/bin:/bin", "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    with pytest.raises(Failed, match="the package registry does not answer"):
        registry.install()
    assert registry.nothing_is_left()
