"""B114: no name of an entry leads out of the tree, at admission or at install, and nothing outside is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reef.errors import InvalidInput, ReefError
from reef.harness.adapter import load_adapter
from reef.harness.admission import admit
from reef.harness.install import install_tree
from reef.harness.tree import Tree
from reef.paths import Paths
from reef.versions.repository import Repository
from tests.faults.wrapped import checksums

NAMES = [
    "../../.bashrc", "/etc/x", "a/../../b", "a\\..\\b", "x\0y", ".git/hooks/post-checkout", "CON", "con", "n" * 300,
    "", ".", "..", "~", "$HOME", "a b", "Brief", "a\n", "nul.md", "-x", "x-", "é",
]  # fmt: skip
PI = load_adapter("pi")
SKILL = "---\nname: x\ndescription: d\n---\n\nbody\n"


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A person's folder with files that a climbing name would reach."""
    folder = tmp_path / "person"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".bashrc").write_text("mine\n")
    (folder / "b").write_text("mine\n")
    return folder


@pytest.fixture
def inside(person: Path) -> Paths:
    return Paths.from_environ({"REEF_HOME": str(person / "reef"), "HOME": str(person)})


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:20]) for name in NAMES])
@pytest.mark.parametrize("kind", ["rules", "skill"])
def test_a_name_that_is_none_is_refused_at_admission_and_said(name: str, kind: str) -> None:
    made = {"op": "create", "id": name, "kind": kind, "config": {"text": SKILL}}
    found = admit(Tree([]), [made], PI)
    assert (found.ok, found.tree) == (False, None)
    assert "is not an entry id" in found.detail
    assert not {"\0", "\n", "\x1b"} & set(found.detail)


@pytest.mark.parametrize(
    "path", ["../x.md", "/etc/x.md", "a/../../b.md", "a\\b.md", "x\0.md", ".git/config.md", "con.md"]
)
def test_a_file_of_a_skill_that_climbs_is_refused_at_admission_with_the_entrys_name(path: str) -> None:
    made = {"op": "create", "id": "brief", "kind": "skill", "config": {"text": SKILL, "files": {path: "x"}}}
    found = admit(Tree([]), [made], PI)
    assert not found.ok
    assert found.detail.startswith("brief: ")


@pytest.mark.parametrize(
    "name", [*NAMES[:7], "n" * 300, "skills/a/../../../.bashrc", "../home/auth.json", "./x", "a//b"]
)
def test_a_path_that_is_none_is_refused_again_at_install_and_nothing_outside_is_touched(
    inside: Paths, person: Path, name: str
) -> None:
    before = checksums(person)
    with pytest.raises(InvalidInput, match="is not a path"):
        install_tree(inside, "default", PI, 2, {"AGENTS.md": b"x\n", name: b"evil\n"}, "r2", "c2")
    assert {file: sum for file, sum in checksums(person).items() if not file.startswith("reef/")} == before
    assert not list((person / "reef").rglob("*.md"))


def test_two_names_equal_but_for_case_are_refused_at_admission_and_at_install(inside: Paths) -> None:
    one = {"op": "create", "id": "brief", "kind": "rules", "config": {"text": "Be brief."}}
    assert not admit(Tree([]), [one, one | {"id": "BRIEF"}], PI).ok
    files = {"skills/a/SKILL.md": b"x", "skills/A/SKILL.md": b"y"}
    with pytest.raises(InvalidInput, match="differ"):
        install_tree(inside, "default", PI, 2, files, "r2", "c2")


def test_a_link_in_the_content_of_a_version_is_refused_and_never_followed(tmp_path: Path, person: Path) -> None:
    repository = Repository(tmp_path / "versions.git")
    repository.ensure()
    base = repository.commit({"harness/rules/a.md": b"be brief\n"}, {}, None, "base")

    def git(*words: str, given: str = "") -> str:
        who = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", "-C", str(tmp_path / "versions.git"), *words]
        done = subprocess.run(command, input=given, env=os.environ | who, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    link = git("hash-object", "-w", "--stdin", given=str(person / ".bashrc"))
    tree = git("mktree", given=f"120000 blob {link}\tb.md\n")
    for folder in ("rules", "harness"):
        tree = git("mktree", given=f"040000 tree {tree}\t{folder}\n")
    linked = git("commit-tree", tree, "-p", base, "-m", "a link")
    with pytest.raises(ReefError, match=r"harness/rules/b\.md of .* is a link"):
        repository.files(linked, "harness/")
