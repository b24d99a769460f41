"""Agents from the Python package registry: each in an environment of its own, every package held to its hash.

Only wheels are taken, so nothing of a package runs before the agent does. Cache and settings of the installers are
reef's own; the person's choice of registry is honoured.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reef.errors import Failed
from reef.harness.adapter_file import Install
from reef.harness.installer import Progress, run_installer
from reef.harness.node import fetching_environment, fits, pip_of
from reef.paths import Paths, ensure_private

LOCK = "requirements.lock"
_ASK_S = 20
_NEWEST = 30
"""Minor version of Python 3 up to which one is looked for by its name."""
_OFFLINE = (
    "dns error",
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Failed to establish a new connection",
    "Connection refused",
    "Network is unreachable",
    "client error (Connect)",
    "operation timed out",
    "timed out",
)
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "invalid peer certificate", "UnknownIssuer")
_HASHES = ("DO NOT MATCH THE HASHES", "Hash mismatch")


@dataclass(frozen=True)
class Python:
    """A Python that runs an agent."""

    program: Path
    version: str


def find_python(spec: Install, environ: Mapping[str, str]) -> tuple[Python | None, list[str]]:
    """The first Python that the agent runs on, this reef's own before the machine's, and the versions of all others."""
    others: list[str] = []
    for program in _programs(environ):
        version = _version(program)
        if version is None:
            continue
        if fits(version, spec.python or "0") and not (spec.python_below and fits(version, spec.python_below)):
            return Python(program, version), others
        others.append(version)
    return None, list(dict.fromkeys(others))


def program_of(folder: Path) -> Path:
    """The interpreter of an agent's environment."""
    return folder / "bin" / "python"


def install_packages(
    spec: Install,
    title: str,
    lock: Path,
    folder: Path,
    place: Path,
    paths: Paths,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
) -> Python:
    """Make `folder` an environment that holds what the lock file names, to be moved to `place`.

    Returns the Python that it is made from. Raises Failed with one sentence that says why not.
    """
    source = os.environ if environ is None else environ
    what = f"{title} {spec.version} cannot be installed"
    python, others = find_python(spec, source)
    if python is None:
        below = f" and before {spec.python_below}" if spec.python_below else ""
        have = f"this machine has {', '.join(others)}" if others else "this machine has none"
        raise Failed(
            f"{what}: it needs Python {spec.python} or later{below}, {have}",
            f"install python{spec.python} beside it, then: reef agents add {place.parent.name}",
        )
    count = len(re.findall(r"^[^\s#][^=\n]*==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    progress(f"installing {title} {spec.version} ({count} packages, each by its hash, Python {python.version})")
    made = _environment(python, folder, source)
    again = f"reef agents add {place.parent.name}"
    if made is not None:
        raise Failed(f"{what}: {python.program} makes no environment: {made}", again)
    argv = _argv(folder, lock, paths, source)
    status, said = run_installer(argv, folder, fetching_environment(source, paths), title, progress)
    if status != 0:
        raise _failed(what, said, again)
    _moved(folder, place)
    return python


def _programs(environ: Mapping[str, str]) -> list[Path]:
    names = ["python3", *(f"python3.{minor}" for minor in range(_NEWEST, 9, -1))]
    path = environ.get("PATH", os.defpath)
    found = [shutil.which(name, path=path) for name in names]
    return [Path(sys.executable), *(Path(program) for program in found if program)]


def _version(program: Path) -> str | None:
    if program == Path(sys.executable):
        return ".".join(map(str, sys.version_info[:3]))
    said = _said([str(program), "-I", "-c", "import sys, venv; print('%d.%d.%d' % sys.version_info[:3])"])
    return said.strip() if said is not None and re.fullmatch(r"\d+\.\d+\.\d+\s*", said) else None


def _said(argv: list[str]) -> str | None:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ASK_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def _environment(python: Python, folder: Path, environ: Mapping[str, str]) -> str | None:
    """Make an empty environment; what went wrong, or None."""
    done = subprocess.run(
        [str(python.program), "-I", "-m", "venv", "--without-pip", str(folder)],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return (lines or ["it gave no reason"])[-1][:300]


def _argv(folder: Path, lock: Path, paths: Paths, environ: Mapping[str, str]) -> list[str]:
    held = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)]
    python = str(program_of(folder))
    uv = shutil.which("uv", path=environ.get("PATH", os.defpath))
    if uv is not None:
        cache = ["--cache-dir", str(ensure_private(paths.cache / "uv"))]
        return [uv, "pip", "install", "--python", python, "--compile-bytecode", *cache, *held]
    cache = ["--cache-dir", str(ensure_private(paths.cache / "pip-packages"))]
    quiet = ["--no-input", "--disable-pip-version-check", "--retries", "2", "--timeout", "30"]
    return [*pip_of(paths, environ), "--python", python, "install", *quiet, *cache, *held]


def _moved(folder: Path, place: Path) -> None:
    """The programs of an environment name their interpreter by its whole path: name the one it will have."""
    old, new = os.fsencode(folder), os.fsencode(place)
    for file in (folder / "bin").iterdir():
        if file.is_file() and not file.is_symlink() and old in (body := file.read_bytes()):
            file.write_bytes(body.replace(old, new))


def _failed(what: str, said: str, again: str) -> Failed:
    if any(word in said for word in _UNTRUSTED):
        told = f"{what}: the package registry's certificate is signed by nobody that this machine knows"
        return Failed(told, f"export SSL_CERT_FILE=FILE PIP_CERT=FILE, with the authority's certificate, then: {again}")
    word = next((word for word in _OFFLINE if word in said), None)
    if word is not None:
        return Failed(f"{what}: the package registry does not answer ({word})", f"check the network, then: {again}")
    if any(word in said for word in _HASHES):
        return Failed(f"{what}: a package does not have the hash of the lock file", again)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines or ["the installer gave no reason"]
    return Failed(f"{what}: {errors[-1].removeprefix('ERROR: ')[:300]}", again)
