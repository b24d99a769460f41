"""B34: daemon, TUI and commands on one store, some over a link, killed at random: it stays whole and nothing is lost.

What a client was told is recorded is there afterwards, with both bodies and an end.
"""

from __future__ import annotations

import os
import pty
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field

import httpx
import pytest

from reef.errors import ReefError
from reef.records.reader import Reader
from tests.http.running import Home

CLIENTS = 4
PATHS = ("/v1/chat/completions", "/s/other/v1/chat/completions")


@dataclass
class Seen:
    """What one client was told: a receipt and what it had asked; whether the whole answer had come by then."""

    receipts: dict[str, str] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)


class Client(threading.Thread):
    """Calls in turns, long and short, whole and streaming, and remembers every receipt that it was shown."""

    def __init__(self, home: Home, number: int, stop: threading.Event) -> None:
        super().__init__()
        self.home, self.number, self.stop, self.seen = home, number, stop, Seen()

    def run(self) -> None:
        talk: list[dict[str, str]] = []
        turn = 0
        while not self.stop.is_set():
            turn += 1
            asked = f"client {self.number} turn {turn} "
            talk = [*talk[-12:], {"role": "user", "content": asked * (60 if turn % 3 else 1)}]
            body = {"model": "m", "messages": talk, "stream": turn % 2 == 0}
            # The daemon may be dead, or die at any moment: what it had not said then is nobody's promise.
            with suppress(httpx.HTTPError, AssertionError, ReefError, OSError, ValueError):
                self._call(PATHS[turn % 2], body, asked)

    def _call(self, path: str, body: dict[str, object], asked: str) -> None:
        with httpx.stream("POST", self.home.url + path, json=body, timeout=20, trust_env=False) as reply:
            receipt = reply.headers.get("x-reef-agent-record-id")
            if receipt:
                self.seen.receipts[receipt] = asked
            text = reply.read().decode()
            if receipt and reply.status_code == 200 and (not body["stream"] or "[DONE]" in text):
                self.seen.answered[receipt] = text


class Readers:
    """A TUI on a terminal and a command, both over a link to the home; what ended is started again."""

    def __init__(self, home: Home) -> None:
        link = home.folder / "link"
        link.symlink_to(home.folder / "reef")
        self.env = home.env | {"REEF_HOME": str(link), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.terminal, self.theirs = pty.openpty()
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def wanted(self, receipts: list[str]) -> dict[str, list[str]]:
        """The TUI, a command that reads, and one that writes."""
        rated = ["good", "--receipt", receipts[-1]] if receipts else ["status"]
        code = "from reef.tui.app import run; raise SystemExit(run())"
        return {
            "tui": [sys.executable, "-c", code],
            "reads": [sys.executable, "-P", "-m", "reef.cli.app", "records", "list", "--json"],
            "writes": [sys.executable, "-P", "-m", "reef.cli.app", *rated],
        }

    def keep(self, receipts: list[str]) -> None:
        """Start what does not run."""
        for name, command in self.wanted(receipts).items():
            process = self.running.get(name)
            if process is None or process.poll() is not None:
                streams = self.theirs if name == "tui" else subprocess.DEVNULL
                self.running[name] = subprocess.Popen(
                    command, env=self.env, stdin=streams, stdout=streams, stderr=streams
                )

    def drain(self) -> None:
        """Read what the TUI paints, which waits for it otherwise."""
        os.set_blocking(self.terminal, False)
        with suppress(BlockingIOError):
            while os.read(self.terminal, 65536):
                continue

    def end(self, name: str) -> None:
        """Kill one of them and see it gone."""
        self.running[name].kill()
        self.running[name].wait()

    def close(self) -> None:
        for name in self.running:
            self.end(name)
        os.close(self.terminal)
        os.close(self.theirs)


@pytest.mark.parametrize(
    ("rounds", "seconds"), [(2, 1.5), pytest.param(10, 6.0, marks=[pytest.mark.slow, pytest.mark.timeout(400)])]
)
def test_a_store_whose_users_are_killed_at_random_stays_whole_and_keeps_every_receipt(
    new_home: Callable[..., Home], rounds: int, seconds: float
) -> None:
    home, chance, stop = new_home().start(), random.Random(34), threading.Event()
    clients = [Client(home, number, stop) for number in range(CLIENTS)]
    readers = Readers(home)
    try:
        for client in clients:
            client.start()
        for _ in range(rounds):
            _one_round(home, readers, clients, seconds, chance)
    finally:
        stop.set()
        for client in clients:
            client.join(30)
        readers.close()
    assert home.stop() == 0
    receipts = {receipt: asked for client in clients for receipt, asked in client.seen.receipts.items()}
    answered = {receipt for client in clients for receipt in client.seen.answered}
    assert len(answered) > 5 * rounds
    listed = subprocess.run(readers.wanted([])["reads"], env=readers.env, capture_output=True, check=True).stdout
    assert any(receipt.encode() in listed for receipt in answered)
    _look(home, receipts, answered)


def _one_round(home: Home, readers: Readers, clients: list[Client], seconds: float, chance: random.Random) -> None:
    """Some seconds of calls in which readers are killed; then the daemon is, and started again."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readers.keep(sorted(receipt for client in clients for receipt in list(client.seen.receipts)))
        readers.drain()
        time.sleep(min(left, chance.uniform(0.2, 0.7)))
        chance.choice(list(readers.running.values())).kill()
    # Left alone with a dead daemon, a command that writes would start the next one itself.
    readers.end("writes")
    assert home.process is not None
    home.process.kill()
    home.process.wait()
    home.start()


def _look(home: Home, receipts: dict[str, str], answered: set[str]) -> None:
    """The file is whole, every receipt resolves, and no row is half of one."""
    with closing(Reader(home.paths.database)) as reader:
        for receipt, asked in receipts.items():
            request = reader.request_bytes(receipt)
            assert request is not None and asked.encode() in request
            state = reader.record(receipt)["state"]
            assert state in {"complete", "partial", "interrupted", "cancelled", "failed"}
            if receipt in answered:
                # The answer's last byte waits for the end of its record.
                assert state == "complete"
                assert b"You said" in (reader.response_bytes(receipt) or b"")
    with closing(sqlite3.connect(home.paths.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        halves = "SELECT count(*) FROM records WHERE state = 'open' OR coalesce(request_part, request_chain) IS NULL"
        assert connection.execute(halves).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM progress").fetchone() == (0,)
