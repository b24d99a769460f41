"""Components: each step publishes its own, the others are carried by reference, and large files stay where they are."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.errors import Failed
from reef.paths import Paths
from reef.versions import large
from reef.versions.catalog import Version
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository

MB = 1024 * 1024
BASE = {"harness/rules/base.md": b"base\n", "config/scenario.json": b"{}\n"}
WEIGHTS = "weights/adapter_model.safetensors"
ADAPTER = {"weights/adapter_config.json": b'{"r": 8}\n'}


def checkpoint(folder: Path, megabytes: int) -> Path:
    """A file of weights whose content is different in every megabyte, made without holding it."""
    file = folder / "checkpoint.safetensors"
    with file.open("wb") as out:
        for number in range(megabytes):
            out.write(b"%08d" % number)
            out.seek(MB - 8, os.SEEK_CUR)
        out.truncate(megabytes * MB)
    return file


async def trained(publisher: Publisher, weights: Path, base: Version) -> Version:
    """A version of a step that made weights."""
    files = {**ADAPTER, WEIGHTS: weights}
    return await publisher.publish(Proposal("s", files, base.release_id, "new weights", changes=("weights",)))


def stored(repository: Repository, version: Version) -> Path:
    return large.locate(repository.path, repository.files(version.release_id)[WEIGHTS])


def taken(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def read_so_far() -> int:
    """Bytes that this process has read, from wherever."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


async def test_each_step_publishes_its_own_component_and_going_back_brings_all_of_them(
    publisher: Publisher, repository: Repository, tmp_path: Path
) -> None:
    base = await publisher.create_base("s", BASE)
    second = await trained(publisher, checkpoint(tmp_path, 1), base)
    rule = {"harness/rules/new.md": b"a rule\n"}
    third = await publisher.publish(Proposal("s", rule, second.release_id, "a rule"))
    settings = {"config/scenario.json": b'{"temperature": 0}\n'}
    fourth = await publisher.publish(Proposal("s", settings, third.release_id, "colder", changes=("config",)))

    def parts(version: Version) -> dict[str, str]:
        return {item["name"]: item["content_id"] for item in version.components}

    assert sorted(parts(base)) == ["config", "harness"]
    assert parts(second) == {**parts(base), "weights": parts(second)["weights"]}
    assert parts(third) == {**parts(second), "harness": parts(third)["harness"]}
    assert parts(fourth) == {**parts(third), "config": parts(fourth)["config"]}
    assert len({str(parts(version)) for version in (base, second, third, fourth)}) == 4
    assert list(repository.files(fourth.release_id, "harness")) == ["harness/rules/new.md"]
    back = await publisher.rollback("s", 2)
    assert parts(back) == parts(second) and back.content_id == second.content_id
    assert parts(await publisher.rollback("s", 1)) == parts(base)
    assert parts(await publisher.rollback("s", 4)) == parts(fourth)


async def test_a_step_cannot_slip_a_file_into_a_component_that_it_did_not_make(publisher: Publisher) -> None:
    base = await publisher.create_base("s", BASE)
    files = {"harness/rules/new.md": b"a rule\n", "config/scenario.json": b"{}"}
    with pytest.raises(Failed, match="changes harness holds files of config"):
        await publisher.publish(Proposal("s", files, base.release_id, "a rule"))
    assert (await publisher.head("s")) == base


@pytest.mark.parametrize("megabytes", [8, pytest.param(500, marks=pytest.mark.slow)])
async def test_a_change_of_the_harness_neither_reads_nor_copies_the_weights(
    publisher: Publisher, repository: Repository, paths: Paths, tmp_path: Path, megabytes: int
) -> None:
    base = await publisher.create_base("s", BASE)
    weights = checkpoint(tmp_path, megabytes)
    tracemalloc.start()
    second = await trained(publisher, weights, base)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * MB, "the weights were held in memory"
    content = stored(repository, second)
    assert content.stat().st_size == megabytes * MB

    away = content.rename(tmp_path / "moved away")
    disk, read = taken(repository.path), read_so_far()
    third = await publisher.publish(Proposal("s", {"harness/rules/new.md": b"x\n"}, second.release_id, "a rule"))
    assert read_so_far() - read < MB
    assert taken(repository.path) - disk < 100_000
    assert third.components[-1] == second.components[-1]
    away.rename(content)
    assert stored(repository, third) == content


@pytest.mark.parametrize("megabytes", [2, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("by", ["path", "file"])
async def test_a_clone_with_git_lfs_gives_whole_files_and_one_without_gives_pointers(
    publisher: Publisher,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    need_tool: Callable[[str], str],
    by: str,
    megabytes: int,
) -> None:
    # git-lfs is a system package of this name on every system; the pipeline installs it beside bubblewrap and tmux.
    need_tool("git-lfs")
    # Some of these packages switch it on for everybody.
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    base = await publisher.create_base("s", BASE)
    weights = checkpoint(tmp_path, megabytes)
    await trained(publisher, weights, base)
    place = str(repository.path) if by == "path" else repository.path.as_uri()

    def clone(name: str) -> Path:
        command = ["git", "clone", "--quiet", "--branch", "s", place, str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return tmp_path / name / WEIGHTS

    # Not switched on yet: the same as on a machine without it.
    pointer = clone("without").read_bytes()
    assert large.locate(repository.path, pointer).stat().st_size == megabytes * MB
    subprocess.run(["git", "lfs", "install", "--skip-repo"], check=True, capture_output=True)
    whole = clone("with")
    assert subprocess.run(["cmp", str(whole), str(weights)], capture_output=True).returncode == 0
    status = subprocess.run(["git", "-C", str(whole.parent), "status", "--short"], check=True, capture_output=True)
    assert status.stdout == b""


def test_what_a_kill_leaves_of_a_large_file_is_removed_at_the_next_start(repository: Repository) -> None:
    folder = repository.path / "lfs" / "objects"
    folder.mkdir(parents=True)
    (folder / ".new-abc").write_bytes(b"half")
    kept = large.store(repository.path, b"whole")
    Repository(repository.path).ensure()
    assert [path.name for path in folder.iterdir() if path.is_file()] == []
    assert large.locate(repository.path, kept).read_bytes() == b"whole"
