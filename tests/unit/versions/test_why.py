"""Which version brought a line, over changes, returns and promotions."""

from __future__ import annotations

import pytest

from reef.versions.catalog import Version
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from reef.versions.why import brought, changed, mapped

PATH = "harness/rules/a.md"


async def publish(publisher: Publisher, head: Version, text: str, pending: bool = False) -> Version:
    return await publisher.publish(Proposal("s", {PATH: text.encode()}, head.release_id, "a change", pending=pending))


@pytest.fixture
async def versions(publisher: Publisher) -> list[Version]:
    """v1 without the file, v2 brings two lines, v3 puts one before them, v4 changes the last."""
    found = [await publisher.create_base("s", {"harness/rules/base.md": b"base\n"})]
    for text in ("one\ntwo\n", "zero\none\ntwo\n", "zero\none\n2\n"):
        found.append(await publish(publisher, found[-1], text))
    return found


def test_each_line_is_led_to_the_version_that_brought_it(repository: Repository, versions: list[Version]) -> None:
    releases = [version.release_id for version in versions]
    assert [brought(repository, releases[3], PATH, line) for line in range(3)] == [
        releases[2],
        releases[1],
        releases[3],
    ]
    assert brought(repository, releases[2], PATH, 2) == releases[1]
    assert changed(repository, releases[3], frozenset([PATH])) == releases[3:0:-1]


async def test_a_return_and_a_yes_are_followed_into_what_they_published(
    publisher: Publisher, repository: Repository, versions: list[Version]
) -> None:
    back = await publisher.rollback("s", 2)
    assert brought(repository, back.release_id, PATH, 0) == versions[1].release_id
    assert changed(repository, back.release_id, frozenset([PATH])) == [versions[1].release_id]
    pending = await publish(publisher, back, "one\ntwo\nthree\n", pending=True)
    served = await publisher.promote("s", pending.number)
    assert brought(repository, served.release_id, PATH, 2) == pending.release_id
    assert brought(repository, served.release_id, PATH, 1) == versions[1].release_id


async def test_a_line_that_went_and_came_again_is_of_the_version_that_brought_it_last(
    publisher: Publisher, repository: Repository, versions: list[Version]
) -> None:
    without = await publisher.publish(Proposal("s", {"harness/rules/b.md": b"b\n"}, versions[3].release_id, "without"))
    again = await publish(publisher, without, "one\n")
    assert brought(repository, again.release_id, PATH, 0) == again.release_id
    assert changed(repository, again.release_id, frozenset([PATH])) == [again.release_id]


def test_a_line_is_found_where_it_stood_before() -> None:
    assert [mapped(["a", "b"], ["x", "a", "b"], line) for line in range(3)] == [None, 0, 1]
