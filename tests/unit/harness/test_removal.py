"""Taking an install away: what it had alone goes, what is shared or somebody else's stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.errors import InvalidInput, NotFound
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree, installed
from reef.harness.removal import remove_install
from reef.paths import Paths

PI = load_adapter("pi")


def put(paths: Paths, scenario: str) -> Path:
    """An install with state of its own. Returns its folder."""
    install = install_tree(paths, scenario, PI, 2, {"AGENTS.md": b"be brief\n"}, "r2", "c2").install
    (install.folder / "env.json").write_text('{"GITHUB_TOKEN": "x"}')
    install.home.mkdir()
    (install.home / "session.jsonl").write_text("{}")
    return install.folder


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_the_last_install_takes_wrapper_and_program_along_and_nothing_else(paths: Paths) -> None:
    before = files(paths.data), files(paths.bin), files(paths.config)
    program = paths.agents / "pi" / "1.6.0" / "cli.js"
    program.parent.mkdir(parents=True)
    program.write_text("x")
    (paths.agents / "node").mkdir()
    first, second = put(paths, "coding"), put(paths, "writing")
    assert remove_install(paths, "coding", "pi").places == [first]
    assert program.is_file() and (paths.bin / "reef-pi").is_file() and installed(paths, "writing", "pi").version == 2
    assert paths.last_install.read_text().strip() == "writing"
    gone = remove_install(paths, "writing", "pi")
    assert gone.places == [second, paths.bin / "reef-pi", paths.agents / "pi"]
    # The checksums of the person's own folders stay, so that they can still be compared.
    assert (files(paths.data) - {"own/pi.json"}, files(paths.bin), files(paths.config)) == before
    assert (paths.agents / "node").is_dir() and list(paths.harness.iterdir()) == []
    with pytest.raises(NotFound, match="no harness of scenario writing is installed for pi"):
        remove_install(paths, "writing", "pi")


def test_a_wrapper_that_is_not_reefs_and_programs_kept_elsewhere_stay(paths: Paths, tmp_path: Path) -> None:
    put(paths, "coding")
    wrapper = paths.bin / "reef-pi"
    wrapper.write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "store" / "pi").mkdir(parents=True)
    paths.agents.symlink_to(tmp_path / "store")
    remove_install(paths, "coding", "pi")
    assert wrapper.is_file() and (tmp_path / "store" / "pi").is_dir()


def test_a_name_that_leaves_the_folder_is_refused(paths: Paths) -> None:
    put(paths, "coding")
    for name in ("../coding/pi", "..", "", "pi/home"):
        with pytest.raises(InvalidInput, match="is no name of an agent"):
            remove_install(paths, "coding", name)
