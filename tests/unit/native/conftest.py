"""A home as the wrapper makes it, and a scripted model server behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reef.native.__main__ import main

ROOT = Path(__file__).parents[3]
Json = dict[str, Any]


@dataclass
class Native:
    """The agent in its home and in a project."""

    home: Path
    project: Path
    log: Path
    capture: pytest.CaptureFixture[str]
    seen_before: int = 0
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *argv: str) -> tuple[int, str, str]:
        """One run in this process: exit status, stdout, stderr."""
        self.capture.readouterr()
        status = main(list(argv))
        out, err = self.capture.readouterr()
        return status, out, err

    def put(self, path: str, text: str) -> Path:
        """A file of the installed version."""
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def requests(self) -> list[Json]:
        """The bodies of the calls that this test made."""
        return [json.loads(entry["body"]) for entry in self.lines()]

    def lines(self) -> list[Json]:
        """The log of those calls."""
        found = [json.loads(line) for line in self.log.read_text().splitlines()[self.seen_before :]]
        return [entry for entry in found if entry["event"] == "request"]

    def session(self) -> list[Json]:
        """The lines of the one session file."""
        (file,) = (self.home / "sessions").glob("*.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="session")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    log = tmp_path_factory.mktemp("fake") / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.openai_server", "--port", "0", "--log", str(log)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    log.touch()
    yield process.stdout.readline().split()[-1], log
    process.terminate()
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def native(
    model_server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Native:
    url, log = model_server
    made = Native(tmp_path / "native", tmp_path / "project", log, capsys, len(log.read_text().splitlines()))
    made.home.mkdir()
    made.project.mkdir()
    bound = {"model": "fake-model", "base_url": f"{url}/v1", "context_window": 8192, "max_tokens": 2048}
    made.put("models.json", json.dumps(bound))
    monkeypatch.chdir(made.project)
    monkeypatch.setenv("REEF_NATIVE_DIR", str(made.home))
    monkeypatch.setenv("REEF_SESSION", "token")
    monkeypatch.setattr("sys.stdin", None)
    return made
