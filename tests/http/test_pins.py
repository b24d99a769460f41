"""A pinned version stays installed, candidates can be compared, and what is not there is named with what is."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from typing import Any, cast

import pytest

from reef.harness.adapter import load_adapter
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.catalog import Rows
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.fakes.agent_place import place_fake_agent
from tests.http.running import Home

NAME = "kept"
PATH = f"/reef/scenarios/{NAME}"


@pytest.fixture(scope="module")
def kept(home: Home) -> Home:
    """`NAME` has v1 to v3 and v4 pending; step 1 made v2, step 2 a candidate that lost, step 3 nothing."""
    home.nobody.post("/reef/scenarios", json={"name": NAME})
    home.stop()

    def begin(conn: sqlite3.Connection) -> int:
        return rows.add_step(conn, NAME, recipe="reefine", metrics={"model_calls": 3.0})

    async def publish() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, cast(Rows, rows))
        first = await writer.write(begin)
        files = repository.files((await publisher.head(NAME)).release_id)
        for number in (2, 3, 4):
            head = await publisher.head(NAME)
            files = files | {"harness/rules/length.md": f"Answer in {number} short sentences.\n".encode()}
            step = first if number == 2 else None
            fields = {"consumed": ["0" * 32]} if step else {}
            made = Proposal(NAME, files, head.release_id, "length", step, pending=number == 4, step_fields=fields)
            await publisher.publish(made)
        lost = await writer.write(begin)
        head = await publisher.head(NAME)
        files = files | {"harness/rules/length.md": b"Answer in 9 short sentences.\n"}
        release = repository.commit(files, {"scenario": NAME, "step": lost}, head.release_id, "lost")
        repository.keep_candidate(NAME, lost, release)
        state = {"state": "rejected", "candidate": release}
        await writer.write(lambda conn: rows.update_step(conn, NAME, lost, **state))
        none = await writer.write(begin)
        await writer.write(lambda conn: rows.update_step(conn, NAME, none, state="skipped"))
        writer.close()

    asyncio.run(publish())
    place_fake_agent(load_adapter("pi", home.paths), home.paths)
    return home.start()


def install(home: Home, **body: Any) -> dict[str, Any]:
    """The last line of an installation, or the error."""
    reply = home.person.post("/reef/harness/install", json={"scenario": NAME, "adapter": "pi"} | body)
    return dict(json.loads(reply.text.splitlines()[-1]))


def test_a_pinned_version_is_what_an_installation_without_a_number_brings_and_no_other_is_installed(kept: Home) -> None:
    assert install(kept)["installed"]["version"] == 3
    pinned = kept.person.post(f"{PATH}/pin", json={"version": "v2"})
    assert [(row["adapter"], row["version"]) for row in pinned.json()["pins"]] == [(None, 2)]
    assert install(kept)["installed"]["version"] == 2
    refused = install(kept, version=3)["error"]
    assert (refused["code"], "pinned to v2 for pi" in refused["message"]) == ("refused", True)
    assert "reef versions unpin" in refused["hint"]
    found = kept.nobody.get(f"{PATH}/releases").json()
    assert ([row["version"] for row in found["releases"] if row["pinned"]], found["pinned"]) == ([2], 2)
    status = kept.nobody.get("/reef/status").json()["scenarios"]
    assert next(row for row in status if row["name"] == NAME)["pinned"] == [{"adapter": None, "version": 2}]
    (pi,) = [row for row in kept.nobody.get("/reef/harness/adapters").json()["adapters"] if row["name"] == "pi"]
    assert pi["scenarios"] == [{"name": NAME, "version": 2, "pinned": True}]
    kept.person.post(f"{PATH}/pin", json={"version": 1, "adapter": "pi"})
    opened = {"scenario": NAME, "adapter": "pi", "version": 2, "cwd": "/tmp", "pid": os.getpid()}
    token = kept.person.post("/reef/sessions", json=opened).json()["token"]
    inside = kept.http(token).get("/reef/harness/releases").json()
    assert ([row["version"] for row in inside["releases"] if row["pinned"]], inside["pinned"]) == ([1], 1)
    assert install(kept)["installed"]["version"] == 1
    assert kept.person.post(f"{PATH}/unpin", json={}).json()["pins"] == []
    assert install(kept)["installed"]["version"] == 3
    gone = kept.person.post(f"{PATH}/unpin", json={})
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")


def test_only_the_person_pins_and_only_what_was_published(kept: Home) -> None:
    for client in (kept.nobody, kept.http(kept.key, **{"x-reef-agent": "1"})):
        assert client.post(f"{PATH}/pin", json={"version": 2}).status_code == 403
        assert client.post(f"{PATH}/unpin", json={}).status_code == 403
    pending = kept.person.post(f"{PATH}/pin", json={"version": 4})
    assert (pending.status_code, "is pending" in pending.json()["error"]["message"]) == (409, True)
    for body, status in (({"version": 99}, 404), ({}, 400), ({"version": 2, "adapter": "no-such"}, 404)):
        assert kept.person.post(f"{PATH}/pin", json=body).status_code == status, body


def test_any_two_of_version_candidate_and_base_are_compared_word_by_word(kept: Home) -> None:
    diff = kept.person.get(f"{PATH}/diff?from=v2&to=s2").json()
    (file,) = diff["files"]
    assert (diff["from"], diff["to"], file["entry"]) == (2, "s2", {"kind": "rules", "id": "length"})
    (line,) = [line for line in file["lines"] if line["sign"] == "~"]
    assert line["words"] == [["=", "Answer in "], ["-", "2"], ["+", "9"], ["=", " short sentences."]]
    assert kept.person.get(f"{PATH}/diff?from=base&to=s1").json()["files"][0]["status"] == "added"
    assert kept.person.get(f"{PATH}/diff?from=s1&to=v2").json()["files"] == []


def test_what_is_not_there_is_named_with_what_is(kept: Home) -> None:
    def told(path: str) -> str:
        reply = kept.person.get(path)
        assert reply.status_code == 404, reply.text
        return str(reply.json()["error"]["message"])

    assert told(f"{PATH}/versions/99") == f"scenario {NAME} has no version v99 (versions: v1 to v4)"
    assert told(f"{PATH}/diff?from=v1&to=s9") == f"step 9 of scenario {NAME} is not there (candidates: s1 to s2)"
    assert told(f"{PATH}/diff?from=v1&to=s3").endswith("made no candidate (candidates: s1 to s2)")
    assert told(f"/reef/steps/{NAME}/9").endswith("has no step 9 (steps: 1 to 3)")
    assert "known: " in told("/reef/harness?adapter=no-such")


def test_releases_have_the_path_of_their_page_and_the_metrics_of_their_step(kept: Home) -> None:
    rows_of = {row["version"]: row for row in kept.nobody.get(f"{PATH}/releases").json()["releases"]}
    assert rows_of[2]["page_path"] == f"/reef/harness/releases/2/page?scenario={NAME}"
    assert rows_of[2]["metrics"] == {"model_calls": 3.0}
    assert "metrics" not in rows_of[1]


def test_commits_say_what_each_version_consumed_and_that_git_tells_the_same(kept: Home) -> None:
    reply = kept.person.get(f"{PATH}/commits?limit=2")
    assert reply.headers["cache-control"] == "no-store"
    found = reply.json()
    assert ([row["step"] for row in found["commits"]], found["next_after_step"]) == ([1, 2], 2)
    second = found["commits"][1]
    assert (second["training_step"], second["operation"], second["operation_verified"]) == (1, "training", True)
    assert (second["consumed_ids"], second["metrics"]) == (["0" * 32], {"model_calls": 3.0})
    rest = kept.person.get(f"{PATH}/commits?after_step=2").json()
    assert ([row["pending"] for row in rest["commits"]], rest["next_after_step"]) == ([False, True], None)
    one = kept.person.get(f"{PATH}/commits?record_id={'1' * 32}&record_id={'0' * 32}").json()
    assert [row["step"] for row in one["commits"]] == [2]
    for query in ("limit=0", "after_step=x", "record_id=short", "&".join(f"record_id={n:032x}" for n in range(101))):
        assert kept.person.get(f"{PATH}/commits?{query}").status_code == 400, query[:30]
    assert kept.nobody.get(f"{PATH}/commits").status_code == 403
