"""The vendors' agents, installed once with a network, run only where nothing but loopback answers.

`REEF_TEST_AGENTS` names a folder that keeps them from one test run to the next.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reef.paths import Paths
from tests.agents.fetching import PROGRAMS, fetch
from tests.agents.pointing import MODEL, point
from tests.e2e.home import Home
from tests.e2e.room import Room

KEEP = os.environ.get("REEF_TEST_AGENTS")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The start of a command line for each agent; fetched once for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    store = Path(KEEP) if KEEP else (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "vendors"
    store.mkdir(exist_ok=True, parents=True)
    places = Paths.from_environ({"HOME": str(store), "REEF_HOME": str(store / "home")})
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetch(PROGRAMS, replace(places, data=store, cache=store / "cache"))


@dataclass
class Served:
    """A home whose daemon goes to one scripted upstream, and the agents that call it."""

    home: Home
    url: str
    programs: dict[str, list[str]]

    def run(
        self, agent: str, dialect: str, scenario: str, prompt: str, again: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run an agent without a person, in a project of its own, with its calls in `scenario`.

        `again` goes on with the session that the last such run has left.
        """
        start = point(agent, dialect, self.url, scenario, self.config(scenario))
        project = self.project(scenario)
        project.mkdir(exist_ok=True)
        words = shlex.join([*self.programs[agent], *start.arguments, *(start.again if again else ()), prompt])
        return self.home.sh(words, cwd=project, **start.environment)

    def requests(self) -> list[dict[str, Any]]:
        """What the upstream was asked, oldest first: `path`, `headers`, `body`."""
        entries = [json.loads(line) for line in self.home.upstream_log.read_text(encoding="utf-8").splitlines()]
        return [entry for entry in entries if entry["event"] == "request"]

    def project(self, scenario: str) -> Path:
        """Where the agent of that scenario works."""
        return self.home.folder / f"{scenario}-project"

    def config(self, scenario: str) -> Path:
        """Where the agent of that scenario keeps its own files."""
        return self.home.folder / f"{scenario}-config"


@pytest.fixture(scope="session")
def serving(
    tmp_path_factory: pytest.TempPathFactory, need_tool: Callable[[str], str], programs: dict[str, list[str]]
) -> Iterator[Callable[[str], Served]]:
    """`serving("chat")`: the home whose upstream speaks those dialects only, made when it is first asked for."""
    room = Room(need_tool("bwrap"))
    made: dict[str, Served] = {}

    def of(dialects: str) -> Served:
        if dialects not in made:
            home = Home(tmp_path_factory.mktemp(dialects.replace(",", "-")) / "person", room)
            upstream, _ = home.fake_upstream(f"--dialects {dialects}")
            home.ok(f"reef up --inference.upstream-url {upstream} --inference.upstream-model {MODEL} --reef.port 0")
            made[dialects] = Served(home, home.json("reef status")["url"], programs)
        return made[dialects]

    yield of
    for served in made.values():
        served.home.sh("reef down --now")
    room.close()
