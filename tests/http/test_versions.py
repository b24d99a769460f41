"""Versions and the harness: read by anyone, decided by the person, with the head that the person saw."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from reef.records import rows
from tests.http.running import Home, chat

NAME = "versioned"
ASKED = "asked-for"


@pytest.fixture(scope="module")
def releases(home: Home) -> list[dict[str, Any]]:
    """Three versions of a scenario: the base, one more with a rule, and a pending one. In `ASKED` asks made them."""
    import asyncio
    import sqlite3

    from reef.records.writer import Writer
    from reef.versions.publish import Proposal, Publisher
    from reef.versions.repository import Repository

    for name in (NAME, ASKED):
        home.nobody.post("/reef/scenarios", json={"name": name})
    home.stop()

    def begin(conn: sqlite3.Connection) -> int:
        ask, _, _ = rows.add_ask(conn, ASKED, "a rule")
        step = rows.add_step(conn, ASKED, recipe="reefine", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        return step

    async def publish() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, rows)  # type: ignore[arg-type]
        head = await publisher.head(NAME)
        files = repository.files(head.release_id) | {"harness/rules/short.md": b"Answer in one sentence.\n"}
        await publisher.publish(Proposal(NAME, files, head.release_id, "a rule about length"))
        pending = files | {"harness/rules/tests.md": b"Write a test first.\n"}
        second = await publisher.head(NAME)
        await publisher.publish(Proposal(NAME, pending, second.release_id, "a rule about tests", pending=True))
        for number in (2, 3):
            base = await publisher.head(ASKED)
            files = repository.files(base.release_id) | {f"harness/rules/r{number}.md": b"Answer in one sentence.\n"}
            made_by = await writer.write(begin)
            await publisher.publish(Proposal(ASKED, files, base.release_id, "a rule", made_by, pending=number == 3))
        writer.close()

    asyncio.run(publish())
    home.start()
    return list(home.nobody.get(f"/reef/scenarios/{NAME}/releases").json()["releases"])


def test_releases_are_newest_first_by_scenario_and_oldest_first_by_harness(
    home: Home, releases: list[dict[str, Any]]
) -> None:
    assert [row["version"] for row in releases] == [3, 2, 1]
    assert [(row["state"], row["current"]) for row in releases] == [
        ("pending", False),
        ("published", True),
        ("published", False),
    ]
    other = home.nobody.get("/reef/harness/releases", headers={"x-reef-scenario": NAME}).json()
    assert (other["scenario"], other["releases"]) == (NAME, releases[::-1])
    assert "asks" not in releases[0]
    keyed = home.person.get(f"/reef/scenarios/{NAME}/releases").json()["releases"]
    assert keyed[0]["asks"] == []


def test_the_meaning_of_a_settled_ask_is_about_what_is_served_now(home: Home, releases: list[dict[str, Any]]) -> None:
    def meanings() -> list[str]:
        asks = home.person.get(f"/reef/asks?scenario={ASKED}").json()["asks"]
        return [home.nobody.get(f"/reef/harness/requests/{ask['id']}/progress").json()["meaning"] for ask in asks[::-1]]

    def decide(verb: str, version: int) -> None:
        assert home.person.post(f"/reef/scenarios/{ASKED}/{verb}", json={"version": version}).is_success

    served = "the change is served now"
    assert meanings() == [served, "the change is ready and waits for the person"]
    decide("promote", 3)
    assert meanings() == ["it was published as v2; v4 is served now", served]
    decide("rollback", 2)
    assert meanings() == [served, "it was published as v3; v5 is served now"]


def test_the_manifest_is_what_the_agent_reads_without_address_or_key(
    home: Home, releases: list[dict[str, Any]]
) -> None:
    reply = home.nobody.get("/reef/harness", headers={"x-reef-scenario": NAME})
    body = reply.json()
    assert body["release_id"] == reply.headers["x-reef-release-id"] == releases[1]["release_id"]
    assert body["parent_release_id"] == releases[2]["release_id"]
    assert body["content_id"] == releases[1]["content_id"]
    assert "Answer in one sentence." in body["files"]["AGENTS.md"]
    assert body["evaluation"] == body["gate"]
    text = reply.text
    assert home.url not in text and home.upstream not in text and home.key not in text
    old = home.nobody.get(
        f"/reef/harness?release_id={releases[2]['release_id']}", headers={"x-reef-scenario": NAME}
    ).json()
    assert old["version"] == 1
    assert "Answer in one sentence." not in str(old["files"])
    for query, status in (("release_id=" + "0" * 40, 404), ("adapter=no-such", 404), ("release_id=x", 400)):
        assert home.nobody.get(f"/reef/harness?{query}").status_code == status, query


def test_one_version_is_shown_with_its_files_and_compared_with_another(
    home: Home, releases: list[dict[str, Any]]
) -> None:
    shown = home.person.get(f"/reef/scenarios/{NAME}/versions/v2").json()
    assert shown["files"]["harness/rules/short.md"] == "Answer in one sentence.\n"
    assert shown["step_row"] is None
    diff = home.person.get(f"/reef/scenarios/{NAME}/diff?from=v1&to=v2").json()
    assert [(file["path"], file["status"]) for file in diff["files"]] == [("harness/rules/short.md", "added")]
    assert "+Answer in one sentence." in diff["files"][0]["hunks"]
    missing = home.person.get(f"/reef/scenarios/{NAME}/versions/99").json()["error"]["message"]
    assert missing.endswith("v99 (versions: v1 to v3)")
    assert home.person.get(f"/reef/scenarios/{NAME}/diff?from=v1").status_code == 400


def test_the_head_that_the_person_saw_is_compared_and_a_lost_race_is_409(
    home: Home, releases: list[dict[str, Any]]
) -> None:
    path = f"/reef/scenarios/{NAME}"
    lost = home.person.post(f"{path}/rollback", json={"version": "v1", "expected_head": "v1"})
    assert (lost.status_code, lost.json()["error"]["code"]) == (409, "conflict")
    assert "v1" in lost.json()["error"]["message"] and "v2" in lost.json()["error"]["message"]
    for body in ({}, {"version": True}, {"version": "v1", "expected_head": []}, {"version": "newest"}):
        assert home.person.post(f"{path}/rollback", json=body).status_code == 400, body
    assert home.person.post(f"{path}/rollback", json={"version": 99}).status_code == 404


def test_promote_and_rollback_publish_old_content_as_a_new_version_that_calls_name_at_once(
    home: Home, releases: list[dict[str, Any]]
) -> None:
    path = f"/reef/scenarios/{NAME}"
    needs = home.nobody.get("/reef/status").json()["needs_you"]
    assert {"kind": "pending_version", "scenario": NAME, "version": 3} in needs
    promoted = home.person.post(f"{path}/promote", json={"version": 3, "expected_head": "v2"}).json()
    assert (promoted["version"], promoted["content_id"]) == (4, releases[0]["content_id"])
    reply = chat(home.nobody, "hi", **{"x-reef-scenario": NAME})
    assert reply.headers["x-reef-release-id"] == promoted["release_id"]
    back = home.person.post(f"{path}/rollback", json={"release_id": releases[2]["release_id"]}).json()
    assert (back["version"], back["content_id"]) == (5, releases[2]["content_id"])
    reply = chat(home.nobody, "hi", **{"x-reef-scenario": NAME})
    assert reply.headers["x-reef-release-id"] == back["release_id"]
    status = home.nobody.get("/reef/status").json()
    assert status["needs_you"] == []
    row = next(row for row in status["scenarios"] if row["name"] == NAME)
    assert (row["head"], row["pending"]) == (5, [])


def test_the_install_script_is_a_shell_script_that_is_whole_or_does_nothing(home: Home) -> None:
    reply = home.nobody.get("/reef/harness/install?adapter=pi", headers={"x-reef-scenario": "default"})
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/x-shellscript")
    assert home.key not in reply.text
    assert subprocess.run(["sh", "-n"], input=reply.text.encode(), check=False).returncode == 0
    before = len(home.nobody.get("/reef/scenarios").json()["scenarios"])
    assert home.nobody.get("/reef/harness/install?adapter=no-such").status_code == 404
    assert len(home.nobody.get("/reef/scenarios").json()["scenarios"]) == before


def test_adapters_say_what_is_pinned_and_what_is_installed(home: Home) -> None:
    found = {row["name"]: row for row in home.nobody.get("/reef/harness/adapters").json()["adapters"]}
    assert found["pi"]["binary"] == "pi"
    assert found["pi"]["install"]["kind"] == "npm"
    assert (found["pi"]["installed"], found["pi"]["scenarios"]) == (False, [])
