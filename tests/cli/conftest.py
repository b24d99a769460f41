"""One real daemon for the tests that only talk to it, in a home with a history, before a scripted model server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reef.client import Client
from reef.paths import Paths
from tests.cli import grown, shell
from tests.cli.shell import Ran

ROOT = Path(__file__).parents[2]
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


def home_environment(folder: Path) -> dict[str, str]:
    """The environment of a reef home in `folder`, and nothing of the person's own."""
    (folder / "user").mkdir(parents=True, exist_ok=True)
    places = {"HOME": folder / "user", "REEF_HOME": folder / "reef", "REEF_BIN_DIR": folder / "bin"}
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {name: str(place) for name, place in places.items()} | {"TZ": "UTC"}


@dataclass(frozen=True)
class Live:
    """A home whose daemon runs."""

    env: dict[str, str]
    folder: Path
    url: str

    @property
    def paths(self) -> Paths:
        return Paths.from_environ(self.env)

    def reef(self, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None, stdin: str = "") -> Ran:
        """Run a command of this home in pipes."""
        return shell.reef(*arguments, env={**self.env, **(env or {})}, cwd=cwd or self.folder, stdin=stdin)

    def json(self, *arguments: str, cwd: Path | None = None) -> Any:
        """Run a command with --json that must succeed, and return what it printed."""
        done = self.reef(*arguments, "--json", cwd=cwd)
        assert done.status == 0, done.err
        return json.loads(done.out)

    def on_terminal(self, *arguments: str, **options: Any) -> tuple[int, str]:
        """Run a command of this home on a terminal."""
        options["env"] = {**self.env, **(options.get("env") or {})}
        return shell.on_terminal(*arguments, **{"cwd": self.folder, **options})

    def chat(self, text: str, scenario: str = "default", token: str | None = None, **body: Any) -> str:
        """One model call. Returns its receipt."""
        headers = {"x-reef-scenario": scenario} | ({"authorization": f"Bearer {token}"} if token else {})
        message = {"model": "fake-model", "messages": [{"role": "user", "content": text}]} | body
        reply = httpx.post(f"{self.url}/v1/chat/completions", json=message, headers=headers, timeout=30)
        assert reply.status_code == 200, reply.text
        return reply.headers["x-reef-agent-record-id"]

    def session(self, cwd: Path, scenario: str = "default") -> tuple[str, str]:
        """Open an agent's session in `cwd`, as a wrapper does. Returns its id and its token."""
        with Client.connect(self.paths, start=False) as client:
            made = client.open_session(scenario, "pi", 1, str(cwd), os.getpid())
        return made["session"], made["token"]


@pytest.fixture(scope="session")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scripted model server."""
    log = tmp_path_factory.mktemp("upstream") / "log.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.openai_server", "--port", "0", "--log", str(log)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().split()[1]
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture(scope="session")
def up_flags(model_server: str) -> list[str]:
    """Flags of `reef up` before the scripted model server, on a port of the system's choice."""
    return ["--inference.upstream-url", model_server, "--inference.upstream-model", "fake-model", "--reef.port", "0"]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory, up_flags: list[str]) -> Iterator[Live]:
    """A home with a history and a running daemon. Tests share it and keep to scenarios and folders of their own."""
    folder = tmp_path_factory.mktemp("home")
    env = home_environment(folder)
    paths = Paths.from_environ(env)
    paths.make()
    grown.grow(paths)
    started = shell.reef("up", *up_flags, env=env, alone=True)
    assert started.status == 0, started.err
    found = json.loads(paths.discovery.read_text())
    yield Live(env, folder, found["url"])
    shell.reef("down", "--now", env=env, alone=True)


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`started("logs", "-f")` runs a command in the background; what still runs at the end of the test is killed."""
    children: list[subprocess.Popen[str]] = []

    def start(*arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [shell.REEF, *arguments],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate(timeout=20)
