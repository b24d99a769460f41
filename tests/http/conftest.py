"""Daemons for the tests of this folder: one shared by a module, and homes to start and stop at will."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.http.running import Home, Upstream, start_upstream


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """The scripted model server, shared by all tests."""
    found = start_upstream(tmp_path_factory.mktemp("upstream"))
    yield found
    found.process.terminate()
    found.process.wait()


@pytest.fixture
def new_home(upstream: Upstream, tmp_path: Path) -> Iterator[Callable[..., Home]]:
    """`new_home()` makes a home of its own; whatever it started is ended after the test."""
    made: list[Home] = []

    def make(**options: object) -> Home:
        folder = tmp_path / f"house{len(made)}"
        folder.mkdir()
        made.append(Home(folder, upstream.url, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for home in made:
        home.close()


@pytest.fixture(scope="module")
def home(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A running daemon that all tests of a module share."""
    found = Home(tmp_path_factory.mktemp("house"), upstream.url).start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def session_token(home: Home) -> str:
    """The token of an agent session of scenario `default`, alive as long as the tests are."""
    body = {"scenario": "default", "adapter": "pi", "version": 1, "cwd": "/tmp", "pid": os.getpid()}
    reply = home.person.post("/reef/sessions", json=body)
    assert reply.status_code == 201, reply.text
    return str(reply.json()["token"])
