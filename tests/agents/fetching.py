"""The agents' own programs, fetched once with a network: each pinned, every package by the hash in its lock file.

They come by their adapters; one that has none yet has its lock file here.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from reef.harness import node
from reef.harness.adapter import adapter_names, load_adapter
from reef.harness.agents import agent_argv, install_agent
from reef.paths import Paths

AGENTS = ("pi", "claude", "codex", "opencode")
LOCKS = Path(__file__).parent / "locks"
PROGRAMS = {
    "claude": "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs",
    "opencode": "node_modules/opencode-*/bin/opencode",
}
"""What is started, relative to the install folder."""


def fetch(names: Iterable[str], paths: Paths) -> dict[str, list[str]]:
    """Install what is not there. Returns the start of a command line for each agent."""
    found: dict[str, list[str]] = {}
    brought = [load_adapter(name, paths) for name in adapter_names(paths) if name in AGENTS]
    for adapter in brought:
        install_agent(adapter, paths, lambda line: None)
        found[adapter.name] = agent_argv(adapter, paths)
    install = load_adapter("pi", paths).install
    assert install is not None
    runtime = node.ensure(install.node, install.node_wheel, paths, lambda line: None)
    for name in names:
        if name not in found:
            program = _program(name, paths.agents / name, runtime, paths)
            script = program.suffix in (".js", ".cjs")
            found[name] = [str(runtime.program), str(program)] if script else [str(program)]
    # What npm keeps of the packages is a third as large as what it made of them, and of no use to another run.
    shutil.rmtree(paths.cache, ignore_errors=True)
    return found


def _program(name: str, folder: Path, runtime: node.Node, paths: Paths) -> Path:
    lock = LOCKS / name / "package-lock.json"
    installed = folder / "package-lock.json"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        fresh = folder.with_name(f".{name}")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(LOCKS / name, fresh)
        command = [*runtime.npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=fresh, env=node.npm_environment(runtime, paths), capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"{name} cannot be installed: {done.stderr[-2000:]}"
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    (program,) = folder.glob(PROGRAMS[name])
    return program
