"""A daemon that starts where one was killed in the middle of a publication."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.http.running import ROOT, Home, wait_for


def prepare(home: Home) -> dict[str, str]:
    """Bring scenario `s` to where an upgrade could be published: the facts for the publication that dies."""

    async def work() -> dict[str, str]:
        writer = Writer(home.paths.database)
        publisher = Publisher(writer, Repository(home.paths.versions_git), rows)
        head = await publisher.head("s")
        rule = {"harness/rules/a.md": b"a\n"}
        second = await publisher.publish(Proposal("s", rule, head.release_id, "a rule"))
        writer.close()
        return {"head": second.release_id}

    return asyncio.run(work())


@pytest.mark.parametrize("point", ["row", pytest.param("objects", marks=pytest.mark.slow), "ref"])
def test_it_serves_one_version_that_catalog_and_branch_agree_on(new_home: Callable[..., Home], point: str) -> None:
    home = new_home().start()
    assert home.nobody.post("/reef/scenarios", json={"name": "s"}).status_code == 201
    home.stop()
    words = [f"{name}={value}" for name, value in prepare(home).items()]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.fakes.dying_publisher", point, "upgrade", *words], cwd=ROOT, env=home.env
    )
    assert killed.returncode == -9
    home.start()
    number = 2 if point == "objects" else 3

    def served() -> bool:
        found = home.nobody.get("/reef/scenarios/s/releases").json()["releases"]
        return "publishing" not in {row["state"] for row in found} and found[0]["current"]

    wait_for(served)
    head = home.nobody.get("/reef/scenarios/s/releases").json()["releases"][0]
    assert (head["version"], head["state"]) == (number, "published")
    assert Repository(home.paths.versions_git).head("s") == head["release_id"]
    assert home.nobody.get("/s/s/reef/harness").json()["release_id"] == head["release_id"]
