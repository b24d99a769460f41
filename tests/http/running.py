"""A real daemon in a home of its own, and the scripted model server behind it, each as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from reef.discovery import read_discovery
from reef.paths import Paths

ROOT = Path(__file__).parents[2]
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "CI", "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE")


@dataclass
class Upstream:
    """The scripted model server."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """The requests that have arrived."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line["event"] == "request"]


def start_upstream(folder: Path, *flags: str, module: str = "tests.fakes.openai_server") -> Upstream:
    """Start it on a port that the system chooses; `flags` say what it lacks."""
    log = folder / "upstream.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--port", "0", "--log", str(log), *flags],
        cwd=ROOT,
        env={name: os.environ[name] for name in KEPT if name in os.environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return Upstream(process, line.split()[1], log)


@dataclass
class Home:
    """One reef home; `start` runs its daemon."""

    folder: Path
    upstream: str
    environ: dict[str, str] = field(default_factory=dict)
    flags: list[list[str]] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """The environment of every process of this home."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        (self.folder / "user").mkdir(exist_ok=True)
        places = {
            "HOME": str(self.folder / "user"),
            "REEF_HOME": str(self.folder / "reef"),
            "REEF_BIN_DIR": str(self.folder / "bin"),
            "TZ": "UTC",
        }
        return kept | places | self.environ

    @property
    def paths(self) -> Paths:
        return Paths.from_environ(self.env)

    @property
    def key(self) -> str:
        return self.paths.person_key.read_text().strip()

    @property
    def url(self) -> str:
        found = read_discovery(self.paths)
        assert found is not None
        return str(found["url"])

    def launch(self, *flags: list[str], foreground: bool = False, base: bool = True) -> subprocess.Popen[bytes]:
        """A daemon process, not waited for. `base` sets an upstream and a port of the system's choice."""
        given = [["inference.upstream-url", self.upstream], ["inference.upstream-model", "fake-model"]]
        given += [] if any(flag[0] == "reef.port" for flag in flags) else [["reef.port", "0"]]
        serve = {"flags": [*(given if base else []), *self.flags, *flags], "foreground": foreground}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "reef.daemon"],
            env=self.env | {"REEF_SERVE": json.dumps(serve)},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def start(self, *flags: list[str]) -> Home:
        """Start the daemon and wait until it answers."""
        self.process = self.launch(*flags)
        self.wait_up(self.process)
        return self

    def wait_up(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until `process` has announced itself and answers."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if process.poll() is not None:
                assert process.stderr is not None
                raise AssertionError(f"the daemon ended with {process.returncode}: {process.stderr.read().decode()}")
            found = read_discovery(self.paths)
            if found is not None and found["pid"] == process.pid:
                return
            time.sleep(0.02)
        raise AssertionError("the daemon did not answer")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the daemon with a signal and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode

    def close(self) -> None:
        """End whatever still runs."""
        for client in self.clients:
            client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def http(self, credential: str | None = None, **headers: str) -> httpx.Client:
        """A client that brings `credential`, or none."""
        if credential is not None:
            headers["authorization"] = f"Bearer {credential}"
        # Reading the certificate store would take longer than the call.
        client = httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False, verify=False)
        self.clients.append(client)
        return client

    @property
    def nobody(self) -> httpx.Client:
        """A client without any credential."""
        return self.http()

    @property
    def person(self) -> httpx.Client:
        """A client with the person key."""
        return self.http(self.key)


def chat(client: httpx.Client, text: str, **headers: str) -> httpx.Response:
    """One chat completion with one user message."""
    body = {"model": "fake-model", "messages": [{"role": "user", "content": text}]}
    return client.post("/v1/chat/completions", json=body, headers=headers)


def wait_for(question: Any, seconds: float = 10) -> Any:
    """The first true answer of `question()`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = question()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")
