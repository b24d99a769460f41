"""B50: versions 1, 2 and 3, back to 1, then another: nothing of what was tried is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.http.running import Home


def publish(home: Home, *texts: str) -> None:
    """Publish a version with each text as its rule; the daemon is down meanwhile."""

    async def work() -> None:
        writer = Writer(home.paths.database)
        publisher = Publisher(writer, Repository(home.paths.versions_git), rows)
        for text in texts:
            head = await publisher.head("default")
            files = {"harness/rules/rule.md": text.encode()}
            await publisher.publish(Proposal("default", files, head.release_id, text))
        writer.close()

    asyncio.run(work())


def test_going_back_is_the_next_version_and_the_ones_between_stay_listed_and_installable(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    home.stop()
    publish(home, "two", "three")
    home.start()
    before = home.nobody.get("/reef/harness/releases").json()["releases"]
    reply = home.person.post("/reef/scenarios/default/rollback", json={"version": 1, "expected_head": "v3"})
    assert (reply.status_code, reply.json()["version"]) == (200, 4)
    home.stop()
    publish(home, "five")
    home.start()
    after = home.nobody.get("/reef/harness/releases").json()["releases"]
    assert [row["version"] for row in after] == [1, 2, 3, 4, 5]
    assert [row["release_id"] for row in after[:3]] == [row["release_id"] for row in before]
    assert after[3]["content_id"] == after[0]["content_id"]
    assert after[4]["parent_release_id"] == after[3]["release_id"]
    for row, text in ((after[1], "two"), (after[2], "three")):
        found = home.nobody.get("/reef/harness", params={"release_id": row["release_id"]}).json()
        assert (row["state"], text in str(found["files"])) == ("published", True)
        wish = {"scenario": "default", "version": row["version"], "adapter": "native"}
        done = home.person.post("/reef/harness/install", json=wish)
        assert f'"version":{row["version"]}' in done.text, done.text
