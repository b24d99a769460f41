"""The vendors' agents, installed once with a network, run only where nothing but loopback answers.

`REEF_TEST_AGENTS` names a folder that keeps them from one test run to the next.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from reef.harness.adapter import adapter_names, load_adapter
from reef.harness.agents import install_agent
from reef.paths import Paths
from tests.agents.fetching import fetch
from tests.agents.pointing import MODEL, WRAPPED, point
from tests.e2e.home import Home, linked
from tests.e2e.room import Room
from tests.e2e.tmux import tmux

__all__ = ["tmux"]
KEEP = os.environ.get("REEF_TEST_AGENTS")


def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the agents are kept, for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    store = Path(KEEP) if KEEP else (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "vendors"
    store.mkdir(exist_ok=True, parents=True)
    return store


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The start of a command line for each agent; fetched once for all workers of a run."""
    store = kept(tmp_path_factory)
    places = Paths.from_environ({"HOME": str(store), "REEF_HOME": str(store / "home")})
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetch(replace(places, data=store, cache=store / "cache"))


@pytest.fixture(scope="session")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `agents/`, all that have a wrapper, and `models/`, the embedded one; once for all workers."""
    store = kept(tmp_path_factory)
    places = replace(Paths.from_environ({"HOME": str(store), "REEF_HOME": str(store / "home")}), data=store)
    places = replace(places, cache=store / "cache")
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in sorted({"claude", "codex", "hermes", "opencode"} & set(adapter_names(places))):
            install_agent(load_adapter(name, places), places, lambda line: None)
        env = os.environ | {"REEF_MODELS_DIR": str(places.models)}
        subprocess.run([sys.executable, "-m", "reef.engines.weights"], env=env, check=True, stdout=subprocess.DEVNULL)
    return store


@dataclass
class Served:
    """A home whose daemon goes to one scripted upstream, and the agents that call it."""

    home: Home
    url: str
    programs: dict[str, list[str]]
    installed: set[str] = field(default_factory=set)
    """The scenarios that have a harness, for an agent with a wrapper."""

    def run(
        self, agent: str, dialect: str, scenario: str, prompt: str, again: bool = False, more: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run an agent without a person, in a project of its own, with its calls in `scenario`.

        `again` goes on with the session that the last such run has left; `more` stands before the prompt.
        """
        project = self.project(scenario)
        project.mkdir(exist_ok=True)
        if agent in WRAPPED:
            return self._wrapped(agent, scenario, [*more, prompt], again)
        start = point(agent, dialect, self.url, scenario, self.config(scenario))
        words = shlex.join([*self.programs[agent], *start.arguments, *(start.again if again else ()), *more, prompt])
        return self.home.sh(words, cwd=project, **start.environment)

    def _wrapped(self, agent: str, scenario: str, rest: Sequence[str], again: bool) -> subprocess.CompletedProcess[str]:
        if scenario not in self.installed:
            self.installed.add(scenario)
            self.home.ok(f"reef scenarios create {scenario} && reef agents add {agent} -s {scenario}")
        arguments, goes_on = WRAPPED[agent]
        words = shlex.join([f"reef-{agent}", *arguments, *(goes_on if again else ()), *rest])
        return self.home.sh(words, cwd=self.project(scenario), REEF_SCENARIO=scenario)

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
            linked(kept(tmp_path_factory) / "agents", home.data / "agents")
            upstream, _ = home.fake_upstream(f"--dialects {dialects}")
            home.ok(f"reef up --inference.upstream-url {upstream} --inference.upstream-model {MODEL} --reef.port 0")
            made[dialects] = Served(home, home.json("reef status")["url"], programs)
        return made[dialects]

    yield of
    for served in made.values():
        served.home.sh("reef down --now")
    room.close()
