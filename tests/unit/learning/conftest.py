"""A home for steps: real database, real git, real processes, a scripted model server on a real socket."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reef.config import Settings, load
from reef.daemon.sessions import Sessions
from reef.harness.adapter import base_entries, load_adapter
from reef.learning.attempt import Home
from reef.learning.context import Context
from reef.learning.models import Budget, Model, Models
from reef.learning.supervisor import Supervisor
from reef.paths import Paths
from reef.records import rows
from reef.records.reader import Reader
from reef.records.writer import Writer
from reef.versions.publish import Publisher
from reef.versions.repository import Repository

ROOT = Path(__file__).parents[3]


@dataclass
class Fake:
    """The running model server, and what it was asked since the test began."""

    url: str
    log: Path
    seen_before: int

    def requests(self) -> list[dict[str, Any]]:
        """The bodies that arrived, oldest first."""
        return [json.loads(line["body"]) for line in self._lines()]

    def headers(self) -> list[dict[str, str]]:
        """The headers that arrived, oldest first."""
        return [line["headers"] for line in self._lines()]

    def _lines(self) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in _read(self.log)[self.seen_before :]]
        return [line for line in lines if line["event"] == "request"]


def _read(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@pytest.fixture(scope="session")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    log = tmp_path_factory.mktemp("fake") / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.openai_server", "--port", "0", "--log", str(log)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1], log
    process.terminate()
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def fake(model_server: tuple[str, Path]) -> Fake:
    url, log = model_server
    return Fake(url, log, len(_read(log)))


@dataclass
class NamedEngine:
    """What a step asks of an engine."""

    name: str = "upstream"
    model: str | None = "fake-model"


@dataclass
class Room:
    """A home with a supervisor."""

    home: Home
    supervisor: Supervisor
    reader: Reader
    paths: Paths
    engine: NamedEngine
    scenario: str = "s"

    async def ask(self, text: str, scenario: str | None = None) -> str:
        """Queue an ask; returns its id."""
        name = scenario or self.scenario
        ask, _, _ = await self.home.writer.write(lambda conn: rows.add_ask(conn, name, text))
        self.supervisor.wake(name)
        return ask

    async def settled(self, ask: str, timeout_s: float = 60) -> dict[str, Any]:
        """The ask once it is settled."""
        end = time.monotonic() + timeout_s
        while (found := self.reader.ask(ask))["state"] in ("queued", "running"):
            assert time.monotonic() < end, f"the ask is still {found['state']}"
            await asyncio.sleep(0.03)
        return found

    async def running(self, number: int = 1) -> None:
        """Wait until a step of this number has its process."""
        end = time.monotonic() + 30
        while True:
            steps = [step for step in self.reader.steps(self.scenario) if step["number"] == number]
            if steps and self.pid(number) is not None:
                return
            assert time.monotonic() < end
            await asyncio.sleep(0.03)

    def pid(self, number: int) -> int | None:
        """The process of a step."""
        row = self.reader._all("SELECT pid FROM steps WHERE scenario = ? AND number = ?", self.scenario, number)
        return int(row[0][0]) if row and row[0][0] is not None else None

    def step(self, number: int = 1) -> dict[str, Any]:
        """One step row with its activity."""
        return self.reader.step(self.scenario, number)

    def output(self, number: int = 1) -> str:
        """What the step printed."""
        return (self.paths.steps / self.scenario / str(number) / "output.log").read_text()


@pytest.fixture
def recipe(paths: Paths) -> Callable[..., str]:
    """Writes a recipe of the person's own: its class body, what it takes; returns its name."""

    def write(body: str, name: str = "tried", head: str = "", inputs: str = '["asks"]') -> str:
        folder = paths.config / "recipes" / name.replace("-", "_")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "recipe.toml").write_text(f'name = "{name}"\nhelp = "for a test"\ninputs = {inputs}\n')
        (folder / "recipe.py").write_text(
            "from reef.evaluation.result import Decision, Evaluation, Group\n"
            "from reef.learning.recipe import *\n"
            f"{textwrap.dedent(head)}\n\nclass Tried(Recipe):\n"
            "    def eligible(self, item): return Sample((item.id,), item)\n"
            "    def batch(self, samples): return Batch(tuple(samples)) if samples else None\n"
            f"{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        )
        return name

    return write


PASSES = """
def evaluate(self, candidate, context):
    return Evaluation(context.policy, [Group("admission", "pass", ""), Group("reach", "pass", "seen")])
"""
RULE = """
def grow(self, batch, context):
    ask = batch.samples[0].source
    config = {"text": ask.text}
    return Candidate("a rule", [{"op": "create", "id": f"r{ask.number}", "kind": "rules", "config": config}])
"""


@pytest.fixture
async def room(paths: Paths, fake: Fake) -> AsyncIterator[Room]:
    """A home whose scenario `s` has the recipe `tried`; write the recipe before the first ask."""
    writer = Writer(paths.database)
    repository = Repository(paths.versions_git)
    repository.ensure()
    publisher = Publisher(writer, repository, rows)
    engine = NamedEngine()
    settings: Settings = load([("harness.step-timeout", "60")], paths=paths).settings
    home = Home(
        writer, repository, publisher, Sessions(writer), settings, paths, lambda: fake.url, lambda scenario: engine
    )
    await publisher.create_base("s", base_entries(load_adapter("pi", paths)).to_files())
    await writer.write(lambda conn: rows.add_scenario(conn, "s", recipe="tried", adapter="pi", state="ready"))
    supervisor = Supervisor(home)
    await supervisor.start()
    reader = Reader(paths.database)
    yield Room(home, supervisor, reader, paths, engine)
    await supervisor.stop()
    reader.close()
    writer.close()


@pytest.fixture
def context(paths: Paths, fake: Fake, tmp_path: Path) -> Iterator[Callable[..., Context]]:
    """Makes what a recipe is given, with a real model behind it; what is said lands in `context.folder / "said"`."""
    made: list[Model] = []
    adapter = load_adapter("pi", paths)

    def make(calls: int = 8, url: str | None = None, **changes: Any) -> Context:
        budget = Budget(calls)
        made.append(Model(url or fake.url, "token", "fake-model", budget, tmp_path / "proposer.jsonl", timeout_s=10))

        def say(kind: str, text: str, failed: bool) -> None:
            with (tmp_path / "said").open("a") as file:
                file.write(f"{'! ' if failed else ''}{text}\n")

        return Context(
            **{
                "scenario": "s", "step": 1, "models": Models(made[-1]), "tree": base_entries(adapter),
                "adapter": adapter, "proposer": "model", "proposer_why": "", "policy": "reach", "budget": budget,
                "rejected": (), "state": None, "reader": Reader(paths.database), "folder": tmp_path, "paths": paths,
                "say": say,
            }
            | changes
        )  # fmt: skip

    yield make
    for model in made:
        model.close()
