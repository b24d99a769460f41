"""A long life of one scenario: publications, returns and refused candidates, and what plain git says of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from reef.paths import Paths
from reef.records.reader import Reader
from reef.versions.catalog import Version
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository


@pytest.mark.parametrize("rounds", [25, pytest.param(200, marks=pytest.mark.slow)])
async def test_after_many_publications_returns_and_refusals_git_finds_a_clean_and_readable_history(
    publisher: Publisher, repository: Repository, paths: Paths, git: Callable[..., str], rounds: int
) -> None:
    head = await publisher.create_base("s", {"harness/rules/base.md": b"base\n"})
    refused = 0
    for number in range(rounds):
        files = {"harness/rules/base.md": b"base\n", f"harness/rules/r{number % 5}.md": b"Rule of turn %d.\n" % number}
        if number % 5 == 4:
            head = await publisher.publish(_weights(head, number))
        elif number % 5 == 3:
            head = await publisher.rollback("s", max(1, head.number - 2))
        elif number % 5 == 2:
            refused += 1
            candidate = repository.commit(files, {"step": number}, head.release_id, "refused", changes=("harness",))
            repository.keep_candidate("s", number, candidate)
        else:
            head = await publisher.publish(Proposal("s", files, head.release_id, f"rule of turn {number}"))
    # Neither a finding nor anything that nothing names.
    assert git("fsck", "--strict", "--full") == ""
    assert len(git("for-each-ref", "refs/reef/candidates/s").splitlines()) == refused
    assert git("rev-parse", "s").strip() == head.release_id
    published = [row for row in Reader(paths.database).versions("s") if row["state"] == "published"]
    assert git("rev-list", "s").split() == [row["release_id"] for row in published]
    assert git("rev-list", "--merges", "--all") == ""
    told = git("log", "-p", "--reverse", "s")
    assert told.count("\ncommit ") + 1 == len(published)
    for line in ("+Rule of turn 0.", "diff --git a/harness/rules/r0.md", "    Reef-Version: {", "+oid sha256:"):
        assert line in told
    assert "Binary files" not in told and "\x1b" not in told
    repository.collect([row["release_id"] for row in published])
    assert git("fsck", "--strict", "--full") == ""
    assert git("log", "-p", "--reverse", "s") == told


def _weights(head: Version, number: int) -> Proposal:
    files = {"weights/adapter_model.safetensors": os.urandom(2000), "weights/adapter_config.json": b"%d\n" % number}
    return Proposal("s", files, head.release_id, f"weights of turn {number}", changes=("weights",))
