"""The agents' own programs, fetched once with a network: each pinned, every package by the hash in its lock file."""

from __future__ import annotations

import shutil

from reef.harness.adapter import load_adapter
from reef.harness.agents import agent_argv, install_agent
from reef.paths import Paths

AGENTS = ("pi", "claude", "codex", "opencode")


def fetch(paths: Paths) -> dict[str, list[str]]:
    """Install what is not there. Returns the start of a command line for each agent."""
    found: dict[str, list[str]] = {}
    for name in AGENTS:
        adapter = load_adapter(name, paths)
        install_agent(adapter, paths, lambda line: None)
        found[name] = agent_argv(adapter, paths)
    # What npm keeps of the packages is a third as large as what it made of them, and of no use to another run.
    shutil.rmtree(paths.cache, ignore_errors=True)
    return found
