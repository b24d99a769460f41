"""A repository and a publisher on real git and a real database."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Publisher
from reef.versions.repository import Repository


@pytest.fixture
def repository(paths: Paths) -> Repository:
    found = Repository(paths.versions_git, lock_wait_s=0.3)
    found.ensure()
    return found


@pytest.fixture
def writer(paths: Paths) -> Iterator[Writer]:
    found = Writer(paths.database)
    yield found
    found.close()


@pytest.fixture
def publisher(writer: Writer, repository: Repository) -> Publisher:
    return Publisher(writer, repository, rows)


@pytest.fixture
def git(repository: Repository) -> Callable[..., str]:
    """The plain git of this machine, as a person would call it in the repository."""

    def call(*arguments: str) -> str:
        return subprocess.run(
            ["git", f"--git-dir={repository.path}", *arguments], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    return call
