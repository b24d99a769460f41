"""What is fetched once with a network, and homes in rooms without one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reef.paths import Paths
from tests.e2e.home import Home, linked
from tests.e2e.room import Room


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `agents/` (pi and a Node for it) and `models/`, fetched once for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    store = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "fetched"
    store.mkdir(exist_ok=True)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (store / "done").exists():
            _fetch(store)
            (store / "done").touch()
    return store


def _fetch(store: Path) -> None:
    from reef.harness.adapter import load_adapter
    from reef.harness.agents import install_agent

    places = Paths.from_environ({"HOME": str(store), "REEF_HOME": str(store / "home")})
    places = replace(places, data=store, cache=store / "cache")
    install_agent(load_adapter("pi", places), places, lambda line: None)
    env = os.environ | {"REEF_MODELS_DIR": str(places.models)}
    subprocess.run([sys.executable, "-m", "reef.engines.weights"], env=env, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def room(need_tool: Callable[[str], str]) -> Iterator[Room]:
    """A room in which only loopback answers."""
    opened = Room(need_tool("bwrap"))
    yield opened
    opened.close()


@pytest.fixture
def home(tmp_path: Path, room: Room, fetched: Path) -> Iterator[Home]:
    """A person's home with pi and the embedded model fetched; its daemon is stopped at the end."""
    made = Home(tmp_path / "person", room)
    linked(fetched / "agents", made.data / "agents")
    linked(fetched / "models", made.data / "models")
    yield made
    made.sh("reef down --now")
