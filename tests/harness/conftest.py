"""The real pi, installed once with a network, run only where nothing but loopback answers.

`REEF_TEST_AGENTS` names a folder that keeps the agents from one test run to the next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.agents import install_agent
from reef.paths import Paths
from tests.e2e.conftest import fetched, room
from tests.e2e.home import Home, linked
from tests.e2e.room import Room
from tests.e2e.tmux import tmux

__all__ = ["fetched", "room", "tmux"]
KEEP = os.environ.get("REEF_TEST_AGENTS")


@pytest.fixture(scope="session")
def agents(request: pytest.FixtureRequest) -> Path:
    """A folder that holds pi and a Node for it."""
    if not KEEP:
        store: Path = request.getfixturevalue("fetched")
        return store / "agents"
    folder = Path(KEEP)
    places = Paths.from_environ({"HOME": str(folder), "REEF_HOME": str(folder / "reef")})
    install_agent(load_adapter("pi", places), replace(places, data=folder), lambda line: None)
    return folder / "agents"


@pytest.fixture
def pi(paths: Paths, agents: Path) -> Adapter:
    """The adapter, with pi itself under the test's own home."""
    linked(agents, paths.agents)
    return load_adapter("pi", paths)


@pytest.fixture
def home(tmp_path: Path, room: Room, agents: Path) -> Iterator[Home]:
    """A person's home in a sealed room, with pi in it; its daemon is stopped at the end."""
    made = Home(tmp_path / "person", room)
    linked(agents, made.data / "agents")
    yield made
    made.sh("reef down --now")


@pytest.fixture
def coding(home: Home) -> Home:
    """A home with a daemon on the scripted upstream and scenario `coding` installed for pi."""
    url, _ = home.fake_upstream()
    home.ok(f"reef up --recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok("reef scenarios create coding && reef versions install -s coding --adapter pi")
    return home
