"""A version carried to another scenario, or away from reef, by the commands."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from reef.records import rows
from reef.records.writer import Writer
from reef.versions.catalog import Rows
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.cli import shell
from tests.cli.shell import Ran
from tests.http.running import Home, wait_for

RULE = b"Answer in one sentence.\n"
SKILL = b"---\nname: release\ndescription: how to release\n---\nTag it.\n"
WEIGHTS = b"weight" * 20_000
NEED = {"kind": "env", "name": "key", "check": "RELEASE_TOKEN"}


@pytest.fixture(scope="module")
def two(home: Home) -> Home:
    """`from` has v2 with a rule and a skill, v3 pending with code; `into` and `again` have their base."""
    for name in ("from", "into", "again", "heavy"):
        home.nobody.post("/reef/scenarios", json={"name": name})
    home.stop()

    async def publish() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, cast(Rows, rows))
        head = await publisher.head("from")
        files = repository.files(head.release_id)
        files |= {"harness/rules/short.md": RULE, "harness/skills/release/SKILL.md": SKILL}
        files |= {"harness/skills/release/steps/list.md": b"One.\n", "harness/commands/ship.md": b"Ship $ARGUMENTS\n"}
        await publisher.publish(Proposal("from", files, head.release_id, "a rule and a skill", requires=[NEED]))
        head = await publisher.head("from")
        files |= {"harness/extensions/notify.ts": b"export default () => {};\n"}
        await publisher.publish(Proposal("from", files, head.release_id, "code", pending=True))
        head = await publisher.head("heavy")
        weights = {"weights/adapter_model.safetensors": WEIGHTS, "weights/adapter_config.json": b"{}\n"}
        await publisher.publish(Proposal("heavy", weights, head.release_id, "tuned", changes=("weights",)))
        writer.close()

    asyncio.run(publish())
    return home.start()


def reef(home: Home, *words: str) -> Ran:
    return shell.reef(*words, env=home.env, cwd=home.folder, alone=True)


def ok(home: Home, *words: str) -> dict[str, Any]:
    done = reef(home, *words, "--json")
    assert done.status == 0, done.err
    return dict(json.loads(done.out))


def releases(home: Home, scenario: str) -> list[dict[str, Any]]:
    return list(home.nobody.get(f"/reef/scenarios/{scenario}/releases").json()["releases"])


@pytest.mark.parametrize(("flags", "into"), [((), "into"), (("--bundle",), "again")])
def test_a_version_is_imported_into_another_scenario_as_a_new_one_after_it_was_shown(
    two: Home, flags: tuple[str, ...], into: str
) -> None:
    made = ok(two, "versions", "export", "v2", "-s", "from", *flags)
    assert Path(made["path"]).name == ("from-v2.bundle" if flags else "from-v2.reef.tar.gz")
    taken = reef(two, "versions", "export", "v2", "-s", "from", *flags)
    assert (taken.status, "is there already and is left alone" in taken.err) == (5, True)
    asked = reef(two, "versions", "import", made["path"], "-s", into)
    assert (asked.status, asked.out) == (2, "")
    assert asked.err.startswith("v2 of scenario from, a rule and a skill\nneeds  env RELEASE_TOKEN (not set)\n")
    assert "+ Answer in one sentence." in asked.err
    assert [row["version"] for row in releases(two, into)] == [1]
    done = reef(two, "versions", "import", made["path"], "-s", into, "--yes")
    assert done.out == f"imported v2 · scenario {into} · published\n"
    row = releases(two, into)[0]
    assert (row["operation"], row["current"], row["requires"]) == ("import", True, [NEED])
    assert row["content_id"] == releases(two, "from")[1]["content_id"]
    assert "you imported it" in reef(two, "versions", "log", "-s", into).out
    again = reef(two, "versions", "import", made["path"], "-s", into, "--yes")
    assert (again.status, "has already" in again.err) == (1, True)


def test_an_imported_version_with_code_waits_for_the_person(two: Home) -> None:
    made = ok(two, "versions", "export", "v3", "-s", "from", "-o", "code.tar.gz")
    done = reef(two, "versions", "import", made["path"], "-s", "into", "--yes")
    assert "code   notify: an extension runs as code" in done.err
    assert "· pending" in done.out
    newest = releases(two, "into")[0]
    assert (newest["state"], newest["current"]) == ("pending", False)


def test_importing_is_the_persons_and_what_changed_since_it_was_seen_is_not_imported(two: Home) -> None:
    made = ok(two, "versions", "export", "v2", "-s", "from", "-o", "seen.tar.gz")
    body = {"path": made["path"]}
    path = "/reef/scenarios/again/import"
    for client in (two.nobody, two.http(two.key, **{"x-reef-agent": "1"})):
        assert client.post(path, json=body).status_code == 403
    two.person.post("/reef/scenarios/again/rollback", json={"version": 1})
    seen = two.person.post(path, json=body | {"look": True}).json()
    assert (seen["pending"], seen["files"][0]["path"]) == (False, "harness/commands/ship.md")
    lost = two.person.post(path, json=body | {"expected": "0" * 40})
    assert lost.status_code == 409
    bad = [{}, {"path": "seen.tar.gz"}, {"path": "/no/such/file"}, {"path": str(two.folder)}]
    assert [two.person.post(path, json=wrong).status_code for wrong in bad] == [400] * 4


def test_what_no_version_may_hold_is_refused_by_name_and_nothing_is_made(two: Home, tmp_path: Path) -> None:
    from tests.unit.versions.test_carry import lock, member, packed

    wrong = {
        "harness/rules/CON.md": (b"x\n", "'CON' is not an entry id"),
        "harness/nowhere/a.md": (b"x\n", "is not a file of a harness tree"),
        "harness/rules/key.md": (b"use ghp_" + b"a1B2" * 9 + b"\n", "holds a credential"),
        "harness/skills/bad/SKILL.md": (b"no front matter\n", "a skill starts with front matter"),
        "config/defaults.json": (b'{"key": "ghp_' + b"a1B2" * 9 + b'"}', "config/defaults.json holds a credential"),
    }
    before = releases(two, "into")
    for path, (content, said) in wrong.items():
        file = packed(tmp_path / "a.tar.gz", [lock({path: content}), member(f"content/{path}", content)])
        refused = reef(two, "versions", "import", str(file), "-s", "into", "--yes")
        assert (refused.status, said in refused.err) == (1, True), refused.err
    assert releases(two, "into") == before


def test_large_files_travel_whole_and_a_bundle_refuses_them(two: Home) -> None:
    refused = reef(two, "versions", "export", "v2", "-s", "heavy", "--bundle")
    assert (refused.status, "weights/adapter_model.safetensors" in refused.err) == (5, True)
    assert not (two.folder / "heavy-v2.bundle").exists()
    made = ok(two, "versions", "export", "v2", "-s", "heavy", "--as", "git", "-o", "whole")
    hashes_hold(Path(made["path"]))
    assert (two.folder / "whole" / "weights" / "adapter_model.safetensors").read_bytes() == WEIGHTS
    (stored,) = (two.folder / "whole" / ".git" / "lfs" / "objects").glob("*/*/*")
    assert stored.read_bytes() == WEIGHTS
    made = ok(two, "versions", "export", "v2", "-s", "heavy")
    assert reef(two, "versions", "import", made["path"], "-s", "again", "--yes").status == 0
    newest = releases(two, "again")[0]
    assert (newest["state"], [part["name"] for part in newest["components"]]) == ("published", ["harness", "weights"])
    assert newest["components"][1] == releases(two, "heavy")[0]["components"][1]


def test_weights_that_can_run_code_when_they_are_loaded_wait_for_the_person(two: Home, tmp_path: Path) -> None:
    from tests.unit.versions.test_carry import lock, member, packed

    for name, pending in (("adapter_model.bin", True), ("adapter_model.safetensors", False)):
        content = {f"weights/{name}": b"w" * 4000}
        file = packed(tmp_path / "a.tar.gz", [lock(content), *(member(f"content/{p}", b) for p, b in content.items())])
        seen = two.person.post("/reef/scenarios/into/import", json={"path": str(file), "look": True}).json()
        assert (seen["pending"], [row["path"] for row in seen["files"]]) == (pending, [f"weights/{name}"])
        assert seen["code"] == ([f"weights/{name}: a pickle can run code when it is loaded"] if pending else [])


def test_what_a_killed_daemon_left_of_an_export_is_removed_by_the_next_one(two: Home) -> None:
    left = two.paths.cache / "carry-1-abc"
    left.mkdir()
    (left / "carried").write_bytes(b"half")
    reply = two.person.get("/reef/scenarios/from/versions/v1/export")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/gzip")
    assert wait_for(lambda: list(two.paths.cache.glob("carry-*")) == [])


def hashes_hold(folder: Path) -> dict[str, Any]:
    """The lock of a plain folder, after a look at every file that it names."""
    lock = json.loads((folder / "reef.lock.json").read_text())
    for path, said in lock["files"].items():
        body = (folder / path).read_bytes()
        assert (hashlib.sha256(body).hexdigest(), len(body)) == (said["sha256"], said["size"]), path
    return dict(lock)


def test_a_folder_of_skills_and_one_with_agents_md_work_without_reef(two: Home) -> None:
    shown = reef(two, "versions", "export", "v2", "-s", "from", "--as", "skills", "-o", "skills")
    assert "left out   rules short: has no place in this form" in shown.err
    lock = hashes_hold(two.folder / "skills")
    assert sorted(lock["files"]) == ["release/SKILL.md", "release/steps/list.md"]
    assert any("reef's own" in reason for reason in lock["left_out"])
    made = ok(two, "versions", "export", "v2", "-s", "from", "--as", "agents-md")
    lock = hashes_hold(Path(made["path"]))
    assert (Path(made["path"]) / "AGENTS.md").read_bytes() == RULE
    assert sorted(lock["files"])[0] == ".agents/skills/release/SKILL.md"
    assert (lock["scenario"], lock["version"], lock["as"]) == ("from", 2, "agents-md")
    unknown = reef(two, "versions", "export", "v2", "-s", "from", "--as", "zip")
    assert (unknown.status, "forms: skills, agents-md, git" in unknown.err) == (2, True)


def test_a_git_folder_has_the_history_and_nothing_to_commit(two: Home) -> None:
    made = ok(two, "versions", "export", "v2", "-s", "from", "--as", "git", "-o", "plain")
    hashes_hold(Path(made["path"]))

    def git(*words: str) -> str:
        command = ["git", "-C", made["path"], *words]
        env = two.env | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    assert git("status", "--porcelain") == ""
    assert git("log", "-1", "--format=%s") == "v2: a rule and a skill\n"
    assert git("rev-parse", "HEAD").strip() == releases(two, "from")[1]["release_id"]
    assert git("fsck", "--strict") == ""
