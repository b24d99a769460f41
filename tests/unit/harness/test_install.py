"""Installing a version: whole, checked, repeatable, and never outside reef's own folders."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reef.errors import InvalidInput, NotFound, Refused
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.install import Done, install_tree, installed, installed_versions
from reef.paths import Paths

FILES = {
    "AGENTS.md": b"be brief\n",
    "skills/linter/SKILL.md": b"---\n---\nx\n",
    "extensions/reef-pi.ts": b"export default 1\n",
}


@pytest.fixture
def pi() -> Adapter:
    return load_adapter("pi")


def put(paths: Paths, pi: Adapter, files: dict[str, bytes] | None = None, version: int = 1) -> Done:
    return install_tree(paths, "coding", pi, version, files or FILES, f"r{version}", f"c{version}")


def listing(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file below `folder` with its time of change and content."""
    return {
        str(file.relative_to(folder)): (file.lstat().st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest())
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_the_tree_holds_the_files_and_install_json_their_hashes(paths: Paths, pi: Adapter) -> None:
    done = put(paths, pi)
    tree = paths.harness / "coding" / "pi" / "tree"
    assert {str(file.relative_to(tree)): file.read_bytes() for file in tree.rglob("*") if file.is_file()} == FILES
    facts = json.loads((tree.parent / "install.json").read_text())
    assert facts["files"]["AGENTS.md"] == hashlib.sha256(b"be brief\n").hexdigest()
    assert (facts["scenario"], facts["version"], facts["release_id"]) == ("coding", 1, "r1")
    assert done.to_json() == {
        "scenario": "coding",
        "adapter": "pi",
        "version": 1,
        "release_id": "r1",
        "path": str(tree.parent),
        "wrapper": str(paths.bin / "reef-pi"),
        "changed": True,
        "files": sorted(FILES),
    }
    assert paths.last_install.read_text() == "coding\n"
    assert tree.stat().st_mode & 0o077 == 0


def test_an_install_that_changes_nothing_writes_nothing(paths: Paths, pi: Adapter) -> None:
    put(paths, pi)
    before = listing(paths.data) | listing(paths.state) | listing(paths.bin)
    again = put(paths, pi)
    assert not again.changed
    assert listing(paths.data) | listing(paths.state) | listing(paths.bin) == before


def test_a_new_version_takes_the_place_of_the_old_one_whole(paths: Paths, pi: Adapter) -> None:
    put(paths, pi)
    put(paths, pi, {"AGENTS.md": b"be long\n"}, 2)
    folder = paths.harness / "coding" / "pi"
    assert [file.name for file in (folder / "tree").iterdir()] == ["AGENTS.md"]
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "install.json", "tree"]
    installed(paths, "coding", "pi").verify()
    assert installed_versions(paths, "pi") == [{"name": "coding", "version": 2}]


def test_the_same_content_under_a_new_number_keeps_the_files(paths: Paths, pi: Adapter) -> None:
    put(paths, pi)
    before = listing(paths.harness / "coding" / "pi" / "tree")
    assert put(paths, pi, version=3).changed
    assert installed(paths, "coding", "pi").version == 3
    assert listing(paths.harness / "coding" / "pi" / "tree") == before


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "a/../../b", "a\\b", "x\0y", ".git/hooks/post-checkout", "CON", "a" * 300]
)
def test_a_path_that_leaves_the_tree_is_refused_at_install_too(paths: Paths, pi: Adapter, path: str) -> None:
    with pytest.raises(InvalidInput, match="is not a path inside"):
        put(paths, pi, {path: b"x"})
    assert not (paths.harness / "coding" / "pi" / "tree").exists()


def test_a_link_planted_in_place_of_the_tree_is_replaced_and_never_written_through(
    paths: Paths, pi: Adapter, sealed_room: Path
) -> None:
    folder = paths.harness / "coding" / "pi"
    folder.mkdir(parents=True)
    (folder / "tree").symlink_to(sealed_room)
    put(paths, pi)
    assert not (folder / "tree").is_symlink()
    assert list(sealed_room.iterdir()) == []


@pytest.mark.parametrize("change", ["edit", "remove", "add", "link"])
def test_a_tree_that_was_changed_by_hand_is_refused_and_the_file_named(paths: Paths, pi: Adapter, change: str) -> None:
    put(paths, pi)
    tree = paths.harness / "coding" / "pi" / "tree"
    if change == "edit":
        (tree / "AGENTS.md").write_text("be loud\n")
    elif change == "remove":
        (tree / "AGENTS.md").unlink()
    elif change == "add":
        (tree / "extensions" / "AGENTS.md").write_text("x")
    else:
        (tree / "AGENTS.md").unlink()
        (tree / "AGENTS.md").symlink_to(tree / "skills" / "linter" / "SKILL.md")
    with pytest.raises(Refused, match=r"AGENTS\.md was (changed|removed|added) after the install") as refused:
        installed(paths, "coding", "pi").verify()
    assert refused.value.exit_code == 5
    assert refused.value.hint == "reef versions install v1 --adapter pi --scenario coding"
    put(paths, pi)
    installed(paths, "coding", "pi").verify()


@pytest.mark.parametrize("field", [("scenario", "\x1b[31mother"), ("adapter", "../../pi"), ("version", True)])
def test_an_install_json_that_speaks_of_another_place_is_no_install(
    paths: Paths, pi: Adapter, field: tuple[str, object]
) -> None:
    put(paths, pi)
    place = paths.harness / "coding" / "pi" / "install.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | dict([field])))
    with pytest.raises(NotFound, match="no harness of scenario coding is installed for pi"):
        installed(paths, "coding", "pi")
    put(paths, pi)
    assert installed(paths, "coding", "pi").version == 1


def test_what_is_not_installed_is_said_with_the_command_that_installs_it(paths: Paths) -> None:
    with pytest.raises(NotFound, match="no harness of scenario coding is installed for pi") as missing:
        installed(paths, "coding", "pi")
    assert missing.value.hint == "reef versions install --adapter pi --scenario coding"


def test_a_file_of_the_persons_own_in_the_wrappers_place_is_left_alone(paths: Paths, pi: Adapter) -> None:
    paths.bin.mkdir(parents=True)
    mine = paths.bin / "reef-pi"
    mine.write_text("#!/bin/sh\necho mine\n")
    with pytest.raises(Refused, match="is not reef's and is left alone"):
        put(paths, pi)
    assert mine.read_text() == "#!/bin/sh\necho mine\n"


def test_the_wrapper_runs_in_a_bare_shell_and_finds_its_home_again(paths: Paths, pi: Adapter) -> None:
    wrapper = put(paths, pi).wrapper
    # The agent is not installed here: its own error proves that adapter, scenario and home were found.
    bare = ["env", "-i", "HOME=/nonexistent", "PATH=/usr/bin:/bin", str(wrapper), "--version"]
    done = subprocess.run(bare, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: pi 1.6.0 is not installed\nhint: reef agents add pi\n"


def test_a_wrapper_whose_interpreter_is_gone_says_so_in_one_line_and_a_new_install_repairs_it(
    paths: Paths, pi: Adapter
) -> None:
    wrapper = put(paths, pi).wrapper
    good = wrapper.read_text()
    wrapper.write_text(good.replace(sys.executable, "/gone/bin/python"))
    done = subprocess.run([str(wrapper)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: the Python of this reef is gone: /gone/bin/python\nhint: ./install.sh\n"
    assert put(paths, pi).changed
    assert wrapper.read_text() == good


def test_a_package_named_reef_in_the_persons_folder_is_not_taken_for_reef(
    paths: Paths, pi: Adapter, tmp_path: Path
) -> None:
    wrapper = put(paths, pi).wrapper
    (tmp_path / "project" / "reef").mkdir(parents=True)
    (tmp_path / "project" / "reef" / "__init__.py").write_text("raise SystemExit('wrong reef')")
    done = subprocess.run(
        [str(wrapper), "help"], cwd=tmp_path / "project", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "evolve" in done.stdout


def test_xdg_folders_of_the_daemon_are_found_again_and_stay_out_of_sight(
    pi: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REEF_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "it's data"))
    places = Paths.from_environ()
    wrapper = put(places, pi).wrapper
    env = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
    found = subprocess.run(
        ["sh", "-c", wrapper.read_text().rpartition("exec ")[0] + 'echo "$XDG_DATA_HOME|$REEF_WRAPPER_SET"'],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == f"{tmp_path}/it's data| XDG_DATA_HOME"
