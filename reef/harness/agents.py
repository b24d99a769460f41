"""The agents' own programs: installed from the adapter's lock file into reef's data folder, and how they are started.

    agents/<adapter>/<version>/   package.json, package-lock.json, node_modules/, installed.json
                                  or an environment of Python: bin/, lib/, pyvenv.cfg, installed.json

An install is whole or not there: it is made beside its place and renamed. Every package is held to the hash in the lock
file and no install script runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from reef.errors import Failed, InvalidInput, NotFound
from reef.harness import node, pypi
from reef.harness.adapter_file import Adapter, Install
from reef.harness.installer import Progress, run_installer
from reef.ids import utc_now
from reef.paths import Paths, ensure_private, write_atomic

LOCK_FILES = ("package.json", "package-lock.json")
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
    """Whether the pinned version is there, whole, and from the lock file that the adapter has now.

    One that is the person's to install is there when their PATH has it.
    """
    if adapter.install is None:
        return shutil.which(adapter.binary) is not None
    if adapter.install.kind == "ships":
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
    if adapter.install is None:
        return [_own_program(adapter)]
    spec = adapter.install
    if spec.kind == "ships":
        return [sys.executable, "-P", "-m", str(spec.module)]
    if not is_installed(adapter, paths):
        there = other_versions(adapter, paths)
        besides = f"; {there[-1]} is there, with which this reef was not tested" if there else ""
        raise NotFound(f"{adapter.title} {spec.version} is not installed{besides}", f"reef agents add {adapter.name}")
    program = _program(adapter, agent_folder(adapter, paths))
    if spec.kind == "pypi":
        # The person's PYTHONPATH is for the person's own programs: the agent would import its parts from there. It must
        # not write beside what it loads either, which may be a plugin of the installed version.
        started = program if spec.runner is None else adapter.folder / spec.runner
        return [str(pypi.program_of(agent_folder(adapter, paths))), "-E", "-P", "-B", str(started)]
    if spec.native:
        return [str(program)]
    found = node.find(spec.node, paths)
    if found is None:
        raise NotFound(f"{adapter.title} needs Node {spec.node} or later", f"reef agents add {adapter.name}")
    return [str(found.program), str(program)]


def other_versions(adapter: Adapter, paths: Paths) -> list[str]:
    """Versions of the agent that earlier releases of reef have installed, the oldest first."""
    found = [file.parent for file in (paths.agents / adapter.name).glob("[!.]*/installed.json")]
    kept = adapter.install.version if adapter.install else None
    return [place.name for place in sorted(found, key=lambda place: place.stat().st_mtime) if place.name != kept]


def _own_program(adapter: Adapter) -> str:
    """The program of an agent that is the person's to install. Raises NotFound."""
    found = shutil.which(adapter.binary)
    if found is None:
        raise NotFound(f"{adapter.title} is yours to install, and no PATH here has {adapter.binary}", adapter.run.get)
    return found


def _program(adapter: Adapter, folder: Path) -> Path | None:
    """What is started, in an install folder; None when it is not there."""
    spec = _install_of(adapter)
    if spec.kind == "pypi" and not pypi.program_of(folder).is_file():
        return None
    found = sorted(place for place in folder.glob(spec.binary_path) if place.is_file())
    return found[0] if found else None


def install_agent(adapter: Adapter, paths: Paths, progress: Progress, environ: Mapping[str, str] | None = None) -> bool:
    """Install the agent's pinned version, with a Node for it where the machine has none that fits.

    Returns whether anything was installed; an agent that is the person's to install is only looked for. `progress`
    gets one line for each thing that takes time. The programs that fetch get `environ` (default: the process's). Raises
    Failed with what went wrong; a half-made install is removed.
    """
    if adapter.install is None:
        _own_program(adapter)
        return False
    spec = adapter.install
    if _is_ready(adapter, paths):
        return False
    with _only_one(paths, progress):
        if _is_ready(adapter, paths):
            return False
        started = time.monotonic()
        if spec.kind == "npm":
            found = node.ensure(spec.node, spec.node_wheel, paths, progress, environ)
            if not is_installed(adapter, paths):
                _install_fresh(adapter, found, paths, progress, environ)
        elif spec.kind == "pypi":
            _install_fresh(adapter, None, paths, progress, environ)
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
    lock = pypi.LOCK if _install_of(adapter).kind == "pypi" else "package-lock.json"
    return hashlib.sha256((adapter.folder / lock).read_bytes()).hexdigest()


def _install_fresh(
    adapter: Adapter, found: node.Node | None, paths: Paths, progress: Progress, environ: Mapping[str, str] | None
) -> None:
    """Install beside the agent's place and take it; `found` is the Node of a kind that has one."""
    spec = _install_of(adapter)
    place = agent_folder(adapter, paths)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    for left in place.parent.glob(f".{place.name}.*"):
        # Only one install runs at a time, so whatever stands here belongs to one that was killed.
        shutil.rmtree(left, ignore_errors=True)
    ensure_private(fresh)
    facts = {"lock": lock_hash(adapter), "version": spec.version}
    try:
        if found is not None:
            _npm_ci(adapter, found, fresh, paths, progress, node.npm_environment(found, paths, environ))
            facts["node"] = found.version
        else:
            lock = adapter.folder / pypi.LOCK
            used = pypi.install_packages(spec, adapter.title, lock, fresh, place, paths, progress, environ)
            facts["python"] = used.version
        if _program(adapter, fresh) is None:
            raise Failed(f"{spec.package} {spec.version} does not hold {spec.binary_path}")
        write_atomic(fresh / "installed.json", json.dumps(facts | {"installed_at": utc_now()}).encode())
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _npm_ci(
    adapter: Adapter, found: node.Node, folder: Path, paths: Paths, progress: Progress, environ: dict[str, str]
) -> None:
    packages = (adapter.folder / "package-lock.json").read_text(encoding="utf-8").count('"integrity"')
    progress(f"installing {adapter.title} {_install_of(adapter).version} ({packages} packages, each by its hash)")
    for name in LOCK_FILES:
        shutil.copyfile(adapter.folder / name, folder / name)
    ensure_private(paths.cache / "npm")
    argv = [*found.npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"]
    status, said = run_installer(argv, folder, environ, adapter.title, progress)
    if status != 0:
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
