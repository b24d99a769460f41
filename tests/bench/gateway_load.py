"""The load of the gateway's bench: connections that make call after call, no two bodies alike, and the CPU it takes."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

BODY_BYTES = 4096
PREFIX_MESSAGES = 50
"""Messages of 4 KB that every call of the agent-shaped run begins with."""
EVENTS = 100
PACE_MS = 5
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_IDLE_S = 0.1
_IDLE_SHARE = 0.005
_IDLE_AT_MOST_S = 3.0
_INDEXED_AT_MOST_S = 30.0
# Random bytes become letters about as frequent as in English, so that bodies compress about as text does.
_LETTERS = (b"       eeeeeettttaaaaoooiiinnnsssshhhrrrddlluuccmmffyywwggppbbvk" * 5)[:256]


@dataclass(frozen=True)
class Case:
    """One kind of load."""

    connections: int
    stream: bool = False
    agent: bool = False

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{'agent' if self.agent else '4 KB'} {'stream' if self.stream else 'whole'} x{self.connections}"


@dataclass
class Run:
    """One stretch of load on one target."""

    count: int
    seconds: float
    cpu_s: float
    latencies: list[float]
    first_bytes: list[float]
    gaps: list[float]
    after_s: float = 0.0
    """CPU that the target used between the load's end and its next idle moment."""
    stub_s: float = 0.0
    joining_s: float = 0.0
    """CPU that the target used for the first call of each connection, which is no part of `cpu_s`."""
    rss_mb: float = 0.0
    index_s: float = 0.0
    """CPU of the background pass that makes these calls findable, during the load and after it; in neither `cpu_s`
    nor `after_s`."""


@dataclass
class Target:
    """One thing that is measured."""

    name: str
    url: str
    pid: int
    calls: dict[Case, list[Run]] = field(default_factory=dict)
    headers: str = ""
    made: int = 0
    """Calls made so far, the warming ones included."""
    index: Callable[[], tuple[float, int]] | None = None
    """CPU seconds of its background index so far, and how many records are not in it; None where there is none."""

    @property
    def index_s(self) -> float:
        """CPU seconds of its background index so far."""
        return self.index()[0] if self.index is not None else 0.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads, to the nanosecond: Linux's clock of another process."""
    return time.clock_gettime((~pid << 3) | 2)


def rss_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_until_idle(pid: int) -> float:
    """Wait until a process does next to nothing; returns the CPU that it used until then."""
    start = last = cpu_seconds(pid)
    end = time.monotonic() + _IDLE_AT_MOST_S
    while time.monotonic() < end:
        time.sleep(_IDLE_S)
        now = cpu_seconds(pid)
        if now - last < _IDLE_S * _IDLE_SHARE:
            break
        last = now
    return cpu_seconds(pid) - start


def words(source: random.Random, size: int) -> bytes:
    """Letters and blanks, which no two calls share."""
    return source.randbytes(size).translate(_LETTERS)


def _message(number: int, text: bytes) -> bytes:
    return b'{"role":"%b","content":"%b"}' % (b"assistant" if number % 2 else b"user", text)


_PREFIX = b"".join(
    _message(number, words(random.Random(number), BODY_BYTES)) + b"," for number in range(PREFIX_MESSAGES)
)


def request_bytes(target: Target, stream: bool, agent: bool, source: random.Random) -> bytes:
    """A request with 4 KB that no other has; an agent's begins with 200 KB that all of a run share."""
    front = b'{"model":"m","stream":%b,"messages":[' % (b"true" if stream else b"false")
    last = _message(PREFIX_MESSAGES, b"")
    text = words(source, BODY_BYTES - len(front) - len(last) - 2)
    body = front + (_PREFIX if agent else b"") + _message(PREFIX_MESSAGES, text) + b"]}"
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {urlsplit(target.url).netloc}\r\n{target.headers}"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def worker(
    target: Target, stream: bool, end: float, run: Run, seed: int, agent: bool = False, kept: Connection | None = None
) -> None:
    """Call after call over one connection, a new one unless `kept` is there."""
    reader, writer = kept or await _connect(target)
    source = random.Random(seed)
    while time.perf_counter() < end:
        await _call(target, stream, run, request_bytes(target, stream, agent, source), (reader, writer))
    if kept is None:
        writer.close()


async def _call(target: Target, stream: bool, run: Run, data: bytes, connection: Connection) -> None:
    reader, writer = connection
    start = time.perf_counter()
    writer.write(data)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b" 200 " not in head[:20]:
        raise RuntimeError(f"{target.name}: {head.decode()}")
    run.first_bytes.append(time.perf_counter() - start)
    # From the line's start: litellm passes on the server's length as `llm_provider-content-length`.
    _, found, rest = head.partition(b"\r\ncontent-length: ")
    if found:
        await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    else:
        events = await _read_pieces(reader, run.gaps)
        if stream and events < EVENTS:
            raise RuntimeError(f"{target.name}: a stream of {events} events instead of {EVENTS}")
    run.latencies.append(time.perf_counter() - start)
    run.count += 1


async def _connect(target: Target) -> Connection:
    place = urlsplit(target.url)
    return await asyncio.open_connection(place.hostname, place.port)


async def _read_pieces(reader: asyncio.StreamReader, gaps: list[float]) -> int:
    """Read a body in chunks to its end, noting the time between them. Returns how many events it had."""
    events = 0
    last = 0.0
    while (size := int(await reader.readline(), 16)) > 0:
        piece = await reader.readexactly(size + 2)
        now = time.perf_counter()
        if events:
            gaps.append(now - last)
        last = now
        events += piece.count(b"data:")
    await reader.readexactly(2)
    return events


async def _stretch(target: Target, stub: Target, case: Case, seconds: float, seed: int) -> Run:
    """First a call over each new connection, apart; then the load over the same connections."""
    joined, run = Run(0, 0, 0, [], [], []), Run(0, 0, 0, [], [], [])
    cpu = cpu_seconds(target.pid)
    connections = [await _connect(target) for _ in range(case.connections)]
    seeds = [seed * 1000 + place for place in range(case.connections)]
    await asyncio.gather(
        *(
            _call(target, False, joined, request_bytes(target, False, False, random.Random(f"first {each}")), kept)
            for each, kept in zip(seeds, connections, strict=True)
        )
    )
    run.joining_s = cpu_seconds(target.pid) - cpu
    index = target.index_s
    cpu, stub_cpu, start = cpu_seconds(target.pid), cpu_seconds(stub.pid), time.perf_counter()
    await asyncio.gather(
        *(
            worker(target, case.stream, start + seconds, run, each, case.agent, kept)
            for each, kept in zip(seeds, connections, strict=True)
        )
    )
    run.seconds = time.perf_counter() - start
    run.cpu_s, run.stub_s = cpu_seconds(target.pid) - cpu, cpu_seconds(stub.pid) - stub_cpu
    run.index_s = target.index_s - index
    run.cpu_s -= run.index_s
    target.made += joined.count + run.count
    for _, writer in connections:
        writer.close()
    return run


def load(target: Target, stub: Target, case: Case, seconds: float, seed: int) -> Run:
    """Load on one target for some seconds, and then a wait until it is idle again."""
    run = asyncio.run(_stretch(target, stub, case, seconds, seed))
    index = target.index_s
    run.after_s = cpu_until_idle(target.pid)
    if target.index is not None:
        # The next target must not be measured beside this one's leftovers.
        end = time.monotonic() + _INDEXED_AT_MOST_S
        while target.index()[1] and time.monotonic() < end:
            time.sleep(_IDLE_S)
    indexed = target.index_s - index
    run.after_s = max(0.0, run.after_s - indexed)
    run.index_s += indexed
    run.rss_mb = rss_mb(target.pid)
    return run
