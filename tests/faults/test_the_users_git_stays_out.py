"""B46, B48, B49: versions are published whatever the git of the person, its owner or its identity is set to do.

A start publishes the base of `default`, a new scenario publishes its own: both go through every setting that is tried.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.harness.adapter import base_of_all
from tests.http.running import Home


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home folder of the daemon's person."""
    found = tmp_path / "person"
    found.mkdir()
    return found


def start(new_home: Callable[..., Home], user: Path, **environ: str) -> Home:
    """A daemon whose person has the HOME `user`, with a scenario made after its start."""
    home = new_home(environ={"HOME": str(user), **environ}).start()
    reply = home.nobody.post("/reef/scenarios", json={"name": "other"})
    assert reply.status_code in (200, 201), reply.text
    return home


def published(home: Home) -> list[str]:
    """The commits of both bases, as git stores them, read past every setting."""
    plain = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "safe.directory=*", f"--git-dir={home.paths.versions_git}", "cat-file", "commit"]
    return [
        subprocess.run([*command, name], env=plain, check=True, capture_output=True, text=True).stdout
        for name in ("default", "other")
    ]


def versions(home: Home) -> list[str]:
    found = home.nobody.get("/reef/scenarios/other/releases").json()["releases"]
    return [f"v{row['version']} {row['operation']} {row['state']}" for row in found]


def test_signing_without_a_key_and_a_missing_identity_stop_no_publication(
    new_home: Callable[..., Home], user: Path
) -> None:
    config = user / ".gitconfig"
    config.write_text("[commit]\n\tgpgsign = true\n[user]\n\tuseConfigOnly = true\n")
    home = start(new_home, user)
    assert versions(home) == ["v1 base published"]
    for commit in published(home):
        assert "author reef <reef@localhost>" in commit and "gpgsig" not in commit
    assert config.read_text() == "[commit]\n\tgpgsign = true\n[user]\n\tuseConfigOnly = true\n"
    assert sorted(path.name for path in user.iterdir() if path.name.startswith(".git")) == [".gitconfig"]


def test_a_repository_of_another_owner_is_used_for_its_own_path_alone(
    new_home: Callable[..., Home], user: Path
) -> None:
    home = start(new_home, user, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    assert versions(home) == ["v1 base published"]
    if os.geteuid() == 0:
        # Where that can be made for real, as a mounted home or a container makes it.
        for folder, _, files in os.walk(home.paths.versions_git):
            for name in (".", *files):
                os.chown(Path(folder, name), 65534, 65534)
        assert home.nobody.post("/reef/scenarios", json={"name": "third"}).status_code in (200, 201)
    assert len(published(home)) == 2
    assert not (user / ".gitconfig").exists()


def test_global_hooks_templates_and_rewriting_do_not_reach_what_is_published(
    new_home: Callable[..., Home], user: Path
) -> None:
    ran = user / "ran"
    for place in ("hooks", "template/hooks"):
        (user / place).mkdir(parents=True)
        for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
            hook = user / place / name
            hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\nexit 1\n")
            hook.chmod(0o755)
    (user / "watcher").write_text(f"#!/bin/sh\necho watcher >> {ran}\nexit 1\n")
    (user / "watcher").chmod(0o755)
    (user / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {user / 'hooks'}\n\tautocrlf = true\n\tfsmonitor = {user / 'watcher'}\n"
        f"[init]\n\ttemplateDir = {user / 'template'}\n\tdefaultBranch = trunk\n"
    )
    home = start(new_home, user)
    assert versions(home) == ["v1 base published"]
    assert not ran.exists()
    assert not (home.paths.versions_git / "hooks").exists()
    shown = home.person.get("/reef/scenarios/other/versions/1").json()["files"]
    assert shown == {path: text.decode() for path, text in base_of_all(home.paths).to_files().items()}
