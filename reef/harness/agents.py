"""The agents' own programs: installed from the adapter's lock file into reef's data folder, and how they are started.

    agents/<adapter>/<version>/   package.json, package-lock.json, node_modules/, installed.json

An install is whole or not there: it is made beside its place and renamed. Every package is held to the hash in the lock
file and no install script runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from reef.errors import Failed, InvalidInput, NotFound
from reef.harness import node
from reef.harness.adapter_file import Adapter, Install
from reef.harness.node import Progress
from reef.ids import utc_now
from reef.paths import Paths, ensure_private, write_atomic

LOCK_FILES = ("package.json", "package-lock.json")
_INSTALL_S = 900
_BEAT_S = 5.0
_UNTRUSTED = (
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
)
_OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ECONNRESET", "ENOTCACHED")


def agent_folder(adapter: Adapter, paths: Paths) -> Path:
    """Where the pinned version of the agent is, whether installed or not."""
    return paths.agents / adapter.name / _install_of(adapter).version


def is_installed(adapter: Adapter, paths: Paths) -> bool:
    """Whether the pinned version is there, whole, and from the lock file that the adapter has now."""
    if _install_of(adapter).kind == "ships":
        return True
    folder = agent_folder(adapter, paths)
    try:
        facts = json.loads((folder / "installed.json").read_text(encoding="utf-8"))
        same = isinstance(facts, dict) and facts.get("lock") == lock_hash(adapter)
    except (OSError, ValueError):
        return False
    return same and _program(adapter, folder) is not None


def agent_argv(adapter: Adapter, paths: Paths) -> list[str]:
    """The start of a command line that runs the agent. Raises NotFound when agent or Node is not there."""
    spec = _install_of(adapter)
    if spec.kind == "ships":
        return [sys.executable, "-P", "-m", str(spec.module)]
    if not is_installed(adapter, paths):
        raise NotFound(f"{adapter.title} {spec.version} is not installed", f"reef agents add {adapter.name}")
    program = _program(adapter, agent_folder(adapter, paths))
    if spec.native or spec.kind == "pypi":
        return [str(program)]
    found = node.find(spec.node, paths)
    if found is None:
        raise NotFound(f"{adapter.title} needs Node {spec.node} or later", f"reef agents add {adapter.name}")
    return [str(found.program), str(program)]


def _program(adapter: Adapter, folder: Path) -> Path | None:
    """What is started, in an install folder; None when it is not there."""
    found = sorted(place for place in folder.glob(_install_of(adapter).binary_path) if place.is_file())
    return found[0] if found else None


def install_agent(adapter: Adapter, paths: Paths, progress: Progress, environ: Mapping[str, str] | None = None) -> bool:
    """Install the agent's pinned version, with a Node for it where the machine has none that fits.

    Returns whether anything was installed. `progress` gets one line for each thing that takes time. The programs that
    fetch get `environ` (default: the process's). Raises Failed with what went wrong; a half-made install is removed.
    """
    spec = _install_of(adapter)
    if _is_ready(adapter, paths):
        return False
    with _only_one(paths, progress):
        if _is_ready(adapter, paths):
            return False
        started = time.monotonic()
        if spec.kind == "npm":
            found = node.ensure(spec.node, spec.node_wheel, paths, progress, environ)
            if not is_installed(adapter, paths):
                _install_npm(adapter, found, paths, progress, environ)
        progress(f"{adapter.title} {spec.version} is installed ({time.monotonic() - started:.1f} s)")
    return True


def _is_ready(adapter: Adapter, paths: Paths) -> bool:
    spec = _install_of(adapter)
    needs_node = spec.kind == "npm" and not spec.native
    return is_installed(adapter, paths) and (not needs_node or node.find(spec.node, paths) is not None)


def _install_of(adapter: Adapter) -> Install:
    if adapter.install is None:
        raise InvalidInput(f"{adapter.title} is not installed by reef")
    return adapter.install


def lock_hash(adapter: Adapter) -> str:
    """What an install is known by: the SHA-256 of the adapter's lock file, hex."""
    lock = "requirements.lock" if _install_of(adapter).kind == "pypi" else "package-lock.json"
    return hashlib.sha256((adapter.folder / lock).read_bytes()).hexdigest()


def _install_npm(
    adapter: Adapter, found: node.Node, paths: Paths, progress: Progress, environ: Mapping[str, str] | None
) -> None:
    spec = _install_of(adapter)
    place = agent_folder(adapter, paths)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    ensure_private(fresh)
    packages = (adapter.folder / "package-lock.json").read_text(encoding="utf-8").count('"integrity"')
    progress(f"installing {adapter.title} {spec.version} ({packages} packages, each by its hash)")
    try:
        for name in LOCK_FILES:
            shutil.copyfile(adapter.folder / name, fresh / name)
        _npm_ci(adapter, found, fresh, paths, progress, node.npm_environment(found, paths, environ))
        if _program(adapter, fresh) is None:
            raise Failed(f"{spec.package} {spec.version} does not hold {spec.binary_path}")
        facts = {"lock": lock_hash(adapter), "version": spec.version, "node": found.version, "installed_at": utc_now()}
        write_atomic(fresh / "installed.json", json.dumps(facts).encode())
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _npm_ci(
    adapter: Adapter, found: node.Node, folder: Path, paths: Paths, progress: Progress, environ: dict[str, str]
) -> None:
    ensure_private(paths.cache / "npm")
    argv = [*found.npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"]
    started = time.monotonic()
    child = subprocess.Popen(
        argv,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    while True:
        try:
            said, _ = child.communicate(timeout=_BEAT_S)
            break
        except subprocess.TimeoutExpired:
            if time.monotonic() - started > _INSTALL_S:
                child.kill()
                child.communicate()
                raise Failed(f"npm did not end within {_INSTALL_S} s", "check the network, then try again") from None
            progress(f"still installing {adapter.title} ({time.monotonic() - started:.0f} s)")
    if child.returncode != 0:
        raise _npm_failed(adapter, said, paths)


def _npm_failed(adapter: Adapter, said: str, paths: Paths) -> Failed:
    again = f"reef agents add {adapter.name}"
    what = f"{adapter.title} {_install_of(adapter).version} cannot be installed"
    code = next((name for name in _OFFLINE if name in said), None)
    if code is not None:
        return Failed(f"{what}: the package registry does not answer ({code})", f"check the network, then: {again}")
    code = next((name for name in _UNTRUSTED if name in said), None)
    if code is not None:
        told = f"{what}: the package registry's certificate is signed by nobody that Node knows ({code})"
        return Failed(told, f"export NODE_EXTRA_CA_CERTS=FILE, with the authority's certificate, then: {again}")
    if "EINTEGRITY" in said:
        return Failed(f"{what}: a package does not have the hash of the lock file", again)
    lines = [line.removeprefix("npm error").strip() for line in said.splitlines() if line.startswith("npm error")]
    reason = next((line for line in lines if line and not line.startswith("code ")), "npm gave no reason")
    return Failed(f"{what}: {reason[:300]}", f"npm's log is in {paths.cache / 'npm' / '_logs'}, then: {again}")


@contextmanager
def _only_one(paths: Paths, progress: Progress) -> Iterator[None]:
    ensure_private(paths.agents)
    with (paths.agents / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another install is running, waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
