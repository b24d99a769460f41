"""The repository: content in, content out, and nothing of the user's git in between."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git.cmd import Git as Command

from reef.errors import Conflict, InvalidInput, NotFound, Unavailable
from reef.paths import Paths
from reef.versions import large
from reef.versions.child_git import ChildGit, GitFailed, environment
from reef.versions.diff import compare
from reef.versions.repository import Repository

RULE = {"harness/rules/tests.md": b"Run the tests.\n"}
Git = Callable[..., str]


def publish(repository: Repository, number: int, parent: str | None, text: bytes = b"x") -> str:
    release = repository.commit({"harness/rules/a.md": text}, {"number": number}, parent, f"v{number}: change")
    repository.advance("default", release, parent)
    return release


def test_content_comes_back_byte_for_byte(repository: Repository) -> None:
    files = {
        "harness/rules/ümlaut.md": "grün\r\nblau".encode(),
        "harness/skills/a/SKILL.md": b"---\nname: a\n---\n",
        "harness/skills/a/more/deep.md": bytes(range(256)),
        "harness/skills/a.b/SKILL.md": b"",
        "harness/config/settings.json": b"{}",
    }
    release = repository.commit(files, {"number": 1}, None, "v1: all of it")
    assert repository.files(release) == files
    assert list(repository.files(release, "harness/skills/a")) == [
        "harness/skills/a/SKILL.md",
        "harness/skills/a/more/deep.md",
    ]


def test_equal_content_has_an_equal_content_id_whatever_the_facts(repository: Repository) -> None:
    first = repository.commit(RULE, {"number": 1}, None, "one")
    second = repository.commit(dict(RULE), {"number": 2, "step": 9}, first, "two")
    assert first != second
    assert repository.content_id(first) == repository.content_id(second)
    assert repository.parent(second) == first


def test_facts_are_a_trailer_that_git_itself_reads(repository: Repository, git: Git) -> None:
    release = publish(repository, 7, None)
    assert repository.facts(release) == {"number": 7}
    assert git("log", "-1", "--format=%(trailers:key=Reef-Version,valueonly)", "default").strip() == '{"number":7}'


def test_a_summary_cannot_forge_a_trailer_or_a_second_line(repository: Repository, git: Git) -> None:
    release = repository.commit(RULE, {"number": 1}, None, 'v1\n\nReef-Version: {"number":99}\x1b[31m')
    repository.advance("default", release, None)
    assert repository.facts(release) == {"number": 1}
    assert len(git("log", "-1", "--format=%s", "default").splitlines()) == 1
    assert "\x1b" not in git("log", "-1", "--format=%B", "default")


def test_head_is_default_from_the_first_moment(repository: Repository, git: Git) -> None:
    assert git("symbolic-ref", "HEAD").strip() == "refs/heads/default"
    assert repository.head("default") is None


def test_large_files_become_pointers_in_the_layout_of_git_lfs(repository: Repository, git: Git) -> None:
    body = os.urandom(100_000)
    release = repository.commit({"weights/adapter_model.safetensors": body, **RULE}, {"number": 1}, None, "v1")
    pointer = repository.files(release)["weights/adapter_model.safetensors"]
    assert len(pointer) < 200
    assert large.locate(repository.path, pointer).read_bytes() == body
    repository.advance("default", release, None)
    assert "*.safetensors filter=lfs" in git("show", "default:.gitattributes")


def test_a_component_that_did_not_change_is_carried_by_its_tree_id(repository: Repository) -> None:
    first = repository.commit({"weights/a.json": b"{}", **RULE}, {"number": 1}, None, "v1")
    second = repository.commit({"harness/rules/b.md": b"new"}, {"number": 2}, first, "v2", changes=["harness"])
    assert repository.components(second)["weights"] == repository.components(first)["weights"]
    assert sorted(repository.files(second)) == ["harness/rules/b.md", "weights/a.json"]


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/x", "a//b", "a/../b", "a\\b", ".git/hooks/post-checkout", "harness/.GIT/x", "a/GIT~1", "a/.git ",
     "a/.g\u200cit/x", "x\0y", "a/" + "n" * 300, "", "a/.", "harness/.gitmodules", "a/\udcff"],
)  # fmt: skip
def test_a_path_that_could_leave_the_tree_is_refused(repository: Repository, path: str) -> None:
    with pytest.raises(InvalidInput):
        repository.commit({path: b"x"}, {}, None, "v1")


def test_a_file_cannot_also_be_a_folder(repository: Repository) -> None:
    with pytest.raises(InvalidInput):
        repository.commit({"a": b"x", "a/b": b"y"}, {}, None, "v1")


def test_only_the_expected_head_moves(repository: Repository) -> None:
    first = publish(repository, 1, None)
    second = publish(repository, 2, first, b"second")
    late = repository.commit({"harness/rules/a.md": b"late"}, {"number": 3}, first, "v3")
    with pytest.raises(Conflict) as caught:
        repository.advance("default", late, first)
    assert first[:12] in caught.value.message and second[:12] in caught.value.message
    assert repository.head("default") == second
    with pytest.raises(Conflict):
        repository.advance("default", late, None)


def test_of_many_racing_publishers_exactly_one_wins(repository: Repository) -> None:
    first = publish(repository, 1, None)
    candidates = [repository.commit({"harness/rules/a.md": b"%d" % n}, {}, first, "x") for n in range(8)]
    won: list[str] = []

    def race(release: str) -> None:
        try:
            Repository(repository.path).advance("default", release, first)
        except Conflict:
            return
        won.append(release)

    threads = [threading.Thread(target=race, args=(release,)) for release in candidates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert repository.head("default") == won[0]


def test_candidates_and_pending_versions_survive_a_collection(repository: Repository, git: Git) -> None:
    first = publish(repository, 1, None)
    lost = repository.commit({"harness/rules/a.md": b"lost"}, {"step": 4}, first, "candidate")
    waits = repository.commit({"harness/rules/a.md": b"waits"}, {"number": 2}, first, "v2")
    assert repository.keep_candidate("default", 4, lost) == "refs/reef/candidates/default/4"
    repository.keep_pending("default", 2, waits)
    git("gc", "--prune=now", "--quiet")
    assert repository.files(lost)["harness/rules/a.md"] == b"lost"
    assert repository.files(waits)["harness/rules/a.md"] == b"waits"
    assert repository.head("default") == first
    publish(repository, 3, first, b"goes on after a collection")


def test_unknown_and_malformed_releases_are_told_apart_from_failures(repository: Repository) -> None:
    with pytest.raises(NotFound):
        repository.files("0" * 40)
    with pytest.raises(NotFound):
        repository.content_id("--all")
    release = publish(repository, 1, None)
    with pytest.raises(NotFound):
        repository.files(repository.content_id(release))


def test_differences_are_told_file_by_file(repository: Repository) -> None:
    first = repository.commit(
        {"harness/rules/a.md": b"one\ntwo\n", "harness/rules/gone.md": b"x\n", "harness/rules/same.md": b"s"}, {}, None
    )
    second = repository.commit(
        {"harness/rules/a.md": b"one\n2\n", "harness/rules/new.md": b"n", "harness/rules/same.md": b"s"}, {}, first
    )
    found = {item.path: item for item in compare(repository, first, second)}
    assert {path: item.status for path, item in found.items()} == {
        "harness/rules/a.md": "changed",
        "harness/rules/gone.md": "removed",
        "harness/rules/new.md": "added",
    }
    assert found["harness/rules/a.md"].hunks.splitlines() == [
        "--- a/harness/rules/a.md",
        "+++ b/harness/rules/a.md",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
    ]
    assert found["harness/rules/new.md"].hunks.endswith("+n\n\\ No newline at end of file\n")


def test_bytes_that_are_no_text_are_only_counted(repository: Repository) -> None:
    first = repository.commit({"harness/rules/a.md": b"a\0b"}, {}, None)
    second = repository.commit({"harness/rules/a.md": b"\xff\xfe"}, {}, first)
    assert compare(repository, first, second)[0].hunks == "not shown as text: 3 bytes before, 2 bytes after\n"


# The user's own git


def hostile_configuration(home: Path) -> Path:
    """A global configuration that signs, hooks, rewrites and watches; returns the file that a hook would write."""
    touched = home / "hook-ran"
    for place in ("hooks", "template/hooks"):
        folder = home / place
        folder.mkdir(parents=True)
        for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
            hook = folder / name
            hook.write_text(f"#!/bin/sh\necho ran > {touched}\nexit 1\n")
            hook.chmod(0o755)
    watcher = home / "watcher"
    watcher.write_text(f"#!/bin/sh\necho ran > {touched}\nexit 1\n")
    watcher.chmod(0o755)
    (home / ".gitconfig").write_text(
        "[commit]\n\tgpgsign = true\n[tag]\n\tgpgsign = true\n[gpg]\n\tprogram = /nonexistent\n"
        f"[core]\n\thooksPath = {home / 'hooks'}\n\tautocrlf = true\n\tfsmonitor = {watcher}\n\tsshCommand = false\n"
        f"[init]\n\ttemplateDir = {home / 'template'}\n\tdefaultBranch = other\n"
        "[i18n]\n\tcommitEncoding = latin1\n[user]\n\tuseConfigOnly = true\n[transfer]\n\tfsckObjects = true\n"
    )
    return touched


def test_the_users_signing_hooks_and_rewriting_do_not_reach_a_publication(paths: Paths, sealed_room: Path) -> None:
    touched = hostile_configuration(sealed_room)
    before = (sealed_room / ".gitconfig").read_bytes()
    repository = Repository(paths.versions_git)
    repository.ensure()
    text = b"one\ntwo\r\nthree\n"
    release = repository.commit({"harness/rules/a.md": text}, {"number": 1}, None, "v1: grün")
    repository.advance("default", release, None)
    assert repository.files(repository.head("default") or "") == {"harness/rules/a.md": text}
    assert not touched.exists()
    assert not (paths.versions_git / "hooks").exists()
    assert (sealed_room / ".gitconfig").read_bytes() == before
    shown = subprocess.run(
        ["git", f"--git-dir={paths.versions_git}", "cat-file", "commit", "default"], capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert b"gpgsig" not in shown
    assert b"author reef <reef@localhost>" in shown


def test_git_variables_of_the_daemon_do_not_reach_its_children(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {
        "GIT_DIR": str(tmp_path / "nowhere"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_PARAMETERS": "'core.hooksPath=/x'",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
        "GIT_AUTHOR_DATE": "not a date",
        "GIT_TRACE": str(tmp_path / "trace"),
    }.items():
        monkeypatch.setenv(name, value)
    repository = Repository(paths.versions_git)
    repository.ensure()
    release = publish(repository, 1, None)
    assert repository.head("default") == release
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in ("objects", "index", "trace")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_repository_of_another_owner_works_for_this_path_alone(repository: Repository, git: Git) -> None:
    first = publish(repository, 1, None)
    for folder, _, files in os.walk(repository.path):
        for name in (".", *files):
            os.chown(Path(folder, name), 65534, 65534)
    with pytest.raises(subprocess.CalledProcessError, match="status 128"):
        subprocess.run(["git", "-C", str(repository.path), "log"], check=True, capture_output=True)
    assert repository.head("default") == first
    publish(repository, 2, first, b"more")


def test_safe_directory_is_given_to_the_child_for_this_path_alone(repository: Repository) -> None:
    release = publish(repository, 1, None)
    own = environment(repository.path)
    outcome = subprocess.run(
        ["git", "-C", str(repository.path), "rev-parse", "default"],
        env={"PATH": os.environ["PATH"], "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", **own},
        capture_output=True,
        text=True,
    )
    assert outcome.stdout.strip() == release
    (place,) = [key[-1] for key, value in own.items() if value == "safe.directory"]
    assert own[f"GIT_CONFIG_VALUE_{place}"] == str(repository.path)


# Locks


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/default.lock"])
def test_an_orphaned_lock_is_removed_and_told(paths: Paths, name: str) -> None:
    told: list[str] = []
    repository = Repository(paths.versions_git, told.append)
    repository.ensure()
    first = publish(repository, 1, None)
    (repository.path / name).write_bytes(b"")
    second = publish(repository, 2, first, b"second")
    assert repository.head("default") == second
    assert not (repository.path / name).exists()
    assert len(told) == 1 and Path(name).name in told[0]


def test_a_lock_that_a_process_holds_is_waited_for_and_then_refused(repository: Repository) -> None:
    first = publish(repository, 1, None)
    lock = repository.path / "index.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(lock)!r}, 'w'); print('held', flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            publish(repository, 2, first, b"second")
        assert time.monotonic() - started >= 0.3
        assert f"process {holder.pid}" in caught.value.message
        assert lock.exists()
        assert repository.head("default") == first
    finally:
        holder.kill()
        holder.wait()
        for pipe in (holder.stdin, holder.stdout):
            assert pipe is not None
            pipe.close()
    publish(repository, 2, first, b"second")
    assert not lock.exists()


def test_a_git_call_that_hangs_is_ended_by_a_signal_that_it_can_handle(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(paths.versions_git)
    repository.ensure()
    note = tmp_path / "ended"
    slow = tmp_path / "git"
    slow.write_text(f"#!/bin/sh\ntrap 'echo TERM > {note}; exit 1' TERM\nwhile :; do sleep 0.05; done\n")
    slow.chmod(0o755)
    monkeypatch.setattr(Command, "GIT_PYTHON_GIT_EXECUTABLE", str(slow))
    with pytest.raises(GitFailed, match="no end after"):
        ChildGit(paths.versions_git, timeout_s=0.5).run("rev-parse", "HEAD")
    assert note.read_text() == "TERM\n"


def test_no_credential_stands_in_a_commit_message(repository: Repository, git: Git) -> None:
    key = "sk-" + "a1B2" * 6
    facts = {"number": 1, "evaluation": {"groups": {key: "pass"}}, "requires": [{"name": f"x {key} \ud800"}]}
    release = repository.commit(RULE, facts, None, f"v1: use {key}")
    assert git("log", "-1", "--format=%s", release).strip() == "v1: use [redacted:openai-key]"
    assert key not in git("cat-file", "commit", release)
    assert repository.facts(release)["requires"] == [{"name": "x [redacted:openai-key] ?"}]


def test_collecting_removes_what_nothing_names_and_keeps_every_release(
    repository: Repository, git: Callable[..., str]
) -> None:
    base = repository.commit({"harness/rules/a.md": b"a"}, {"number": 1})
    repository.advance("default", base, None)
    lost = repository.commit({"harness/rules/b.md": b"rejected"}, {"candidate": True}, base)
    repository.keep_candidate("default", 1, lost)
    kept = repository.commit({"harness/rules/c.md": b"kept"}, {"candidate": True}, base)
    repository.keep_candidate("default", 2, kept)
    unnamed = repository.commit({"harness/rules/d.md": b"in the catalog alone"}, {"number": 2}, base)
    blob = repository.listing(lost)["harness/rules/b.md"]
    repository.drop_candidate("default", 1)
    repository.collect([base, unnamed])
    with pytest.raises(NotFound):
        repository.blob(blob)
    for release in (base, kept, unnamed):
        assert repository.files(release)
    assert git("for-each-ref", "refs/reef/held") == "" and "missing" not in git("fsck")


def test_collecting_removes_large_files_that_no_version_holds(repository: Repository) -> None:
    base = repository.commit({"weights/adapter_model.safetensors": b"kept" * 100}, {"number": 1})
    repository.advance("default", base, None)
    lost = repository.commit({"weights/adapter_model.safetensors": b"rejected" * 100}, {"candidate": True}, base)
    repository.keep_candidate("default", 1, lost)
    pointers = [repository.files(release)["weights/adapter_model.safetensors"] for release in (base, lost)]
    repository.collect([base])
    assert [large.locate(repository.path, pointer).stat().st_size for pointer in pointers] == [400, 800]
    repository.drop_candidate("default", 1)
    repository.collect([base])
    assert large.locate(repository.path, pointers[0]).read_bytes() == b"kept" * 100
    with pytest.raises(NotFound):
        large.locate(repository.path, pointers[1])


def test_collecting_spares_a_commit_whose_ref_is_about_to_be_written(repository: Repository) -> None:
    base = repository.commit({"harness/rules/a.md": b"a"}, {"number": 1})
    repository.collect([])
    repository.advance("default", base, None)
    assert repository.files(base) == {"harness/rules/a.md": b"a"}


def test_what_is_packed_is_read_without_a_process_and_what_is_not_what_its_name_says_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repository.commit({"harness/rules/a.md": b"a" * 500}, {"number": 1})
    repository.advance("default", base, None)
    repository.collect([base])
    assert not list((repository.path / "objects").glob("[0-9a-f][0-9a-f]/*"))
    monkeypatch.setenv("PATH", "")
    assert repository.files(base) == {"harness/rules/a.md": b"a" * 500}
