"""What recording a call costs: reef's daemon against a bare relay that waits for one durable row, in one run.

`python -m tests.bench.gateway [--seconds 2] [--rounds 2]` starts a stub, the floor and a daemon, lets them take turns,
and prints requests a second, latencies, CPU of the proxy's process a request, and the ratios to the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from reef.client import start_daemon, wait_stopped
from reef.paths import Paths

BODY_BYTES = 4096


@dataclass
class Target:
    """One thing that is measured."""

    name: str
    url: str
    pid: int
    calls: dict[str, list[Run]] = field(default_factory=dict)


@dataclass
class Run:
    """One stretch of load on one target."""

    count: int
    seconds: float
    cpu_s: float
    latencies: list[float]
    first_bytes: list[float]
    gaps: list[float]

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / max(1, self.count) * 1e6


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def request_bytes(host: str, number: int, stream: bool) -> bytes:
    """A request of 4 KB that no other is like."""
    words = " ".join(str((number * 7919 + place * 104729) % 1_000_003) for place in range(600))
    start = f'{{"model":"m","stream":{"true" if stream else "false"},"messages":[{{"role":"user","content":"{number} '
    body = (start + words)[: BODY_BYTES - 4] + '"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    return (head + body).encode()


async def worker(target: Target, stream: bool, end: float, run: Run, seed: int) -> None:
    """One connection that makes call after call."""
    place = urlsplit(target.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    number = seed * 1_000_000
    while time.perf_counter() < end:
        number += 1
        data = request_bytes(place.netloc, number, stream)
        start = time.perf_counter()
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head[:20]:
            raise RuntimeError(f"{target.name}: {head.decode()}")
        run.first_bytes.append(time.perf_counter() - start)
        if b"content-length" in head:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
        else:
            last = time.perf_counter()
            while (size := int(await reader.readline(), 16)) > 0:
                await reader.readexactly(size + 2)
                now = time.perf_counter()
                run.gaps.append(now - last)
                last = now
            await reader.readexactly(2)
        run.latencies.append(time.perf_counter() - start)
        run.count += 1
    writer.close()


async def load(target: Target, connections: int, stream: bool, seconds: float, seed: int) -> Run:
    """Load on one target for some seconds."""
    run = Run(0, 0, 0, [], [], [])
    cpu, start = cpu_seconds(target.pid), time.perf_counter()
    workers = [worker(target, stream, start + seconds, run, seed * 1000 + place) for place in range(connections)]
    await asyncio.gather(*workers)
    run.seconds = time.perf_counter() - start
    run.cpu_s = cpu_seconds(target.pid) - cpu
    return run


def child(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start one of the bench's own processes; returns it and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.gateway_parts", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[1]


def measure(targets: list[Target], rounds: int, seconds: float) -> None:
    """Every case, the targets taking turns."""
    cases = [("1 conn", 1, False), ("16 conn", 16, False), ("16 streams", 16, True), ("1 stream", 1, True)]
    for target in targets:
        asyncio.run(load(target, 8, False, 0.5, 99))
    for turn in range(rounds):
        for name, connections, stream in cases:
            for place, target in enumerate(targets):
                seed = turn * 100 + place * 10 + connections
                run = asyncio.run(load(target, connections, stream, seconds, seed + (50 if stream else 0)))
                target.calls.setdefault(name, []).append(run)


def quantile(values: list[float], part: float) -> float:
    """In milliseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000 if values else 0.0


def report(targets: list[Target]) -> dict[str, float]:
    """Print the table and the ratios; returns the ratios."""
    ratios: dict[str, float] = {}
    floor = next(target for target in targets if target.name == "floor")
    direct = next(target for target in targets if target.name == "direct")
    print(f"{'case':11} {'target':7} {'rps':>7} {'p50 ms':>7} {'p99 ms':>7} {'first':>7} {'gap99':>6} {'CPU us':>7}")
    for case in floor.calls:
        for target in targets:
            runs = target.calls[case]
            latencies = [value for run in runs for value in run.latencies]
            firsts = [value for run in runs for value in run.first_bytes]
            gaps = [value for run in runs for value in run.gaps]
            rate = sum(run.count for run in runs) / sum(run.seconds for run in runs)
            cpu = statistics.median(run.cpu_us for run in runs)
            print(
                f"{case:11} {target.name:7} {rate:7.0f} {quantile(latencies, 0.5):7.2f}"
                f" {quantile(latencies, 0.99):7.2f} {quantile(firsts, 0.5):7.2f} {quantile(gaps, 0.99):6.1f} {cpu:7.0f}"
            )
        for target in targets:
            if target in (floor, direct):
                continue
            ratios[f"CPU, {case}"] = cpu_of(target, case) / cpu_of(floor, case)
            what = "first_bytes" if "stream" in case else "latencies"
            ratios[f"p50 added, {case}"] = (p50(target, case, what) - p50(direct, case, what)) / max(
                1e-6, p50(floor, case, what) - p50(direct, case, what)
            )
    for name, ratio in ratios.items():
        print(f"reef / floor: {name}: {ratio:.2f}")
    return ratios


def cpu_of(target: Target, case: str) -> float:
    """Median CPU a request over the runs."""
    return statistics.median(run.cpu_us for run in target.calls[case])


def p50(target: Target, case: str, what: str) -> float:
    """Median of one kind of time over all runs, in milliseconds."""
    return quantile([value for run in target.calls[case] for value in getattr(run, what)], 0.5)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as folder:
        paths = Paths.from_environ({"HOME": folder, "REEF_HOME": f"{folder}/reef"})
        stub, stub_url = child("stub")
        floor, floor_url = child("floor", stub_url, f"{folder}/floor.db")
        os.environ["REEF_HOME"] = f"{folder}/reef"
        flags = [["inference.upstream-url", stub_url], ["inference.upstream-model", "m"], ["reef.port", "0"]]
        found = start_daemon(paths, {"flags": flags})
        targets = [
            Target("direct", stub_url, stub.pid),
            Target("floor", floor_url, floor.pid),
            Target("reef", found["url"], found["pid"]),
        ]
        idle = rss_mb(found["pid"])
        try:
            measure(targets, arguments.rounds, arguments.seconds)
            ratios = report(targets)
            print(f"daemon's memory: {idle:.0f} MB idle, {rss_mb(found['pid']):.0f} MB after the load")
            if arguments.json:
                arguments.json.write_text(json.dumps(ratios))
        finally:
            os.kill(found["pid"], 15)
            stub.kill()
            floor.kill()
            wait_stopped(found, paths, 20)


if __name__ == "__main__":
    main()
