"""Durable rows a second with 16 writers: reef's writer beside a bare one, which puts the same bytes into one table.

The bodies are those of the gateway's bench, and once more prose, which takes longer to compress and to look through
for credentials.
"""

from __future__ import annotations

import asyncio
import queue
import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from reef.ids import new_id, utc_now
from reef.records.calls import OpenRecord, Settlement, store_records
from reef.records.writer import Grouped, Writer
from tests.bench.gateway_load import words
from tests.bench.records_sessions import dumped, prose

WRITERS = 16
REQUEST_BYTES = 4_000
REPLY_BYTES = 800
BODIES = 512

Write = Callable[[bytes, bytes], Awaitable[None]]


@dataclass
class Rate:
    """Rows a second of both, with one kind of bodies and one setting of `synchronous`."""

    bodies: str
    synchronous: str
    reef: float = 0.0
    bare: float = 0.0


class Call(Grouped):
    """A call that ended before its row was written, as the gateway has most written that do not stream."""

    def __init__(self, request: bytes, reply: bytes) -> None:
        self.row = OpenRecord(
            new_id(), "default", "chat", "/v1/chat/completions", request, model="m", engine="upstream",
            load_id="upstream", preview="What does this say?",
        )  # fmt: skip
        self.end = Settlement(
            "complete", response=reply, status=200, first_byte_ms=101.2051, duration_ms=103.9417, prompt_tokens=1021,
            completion_tokens=201, expected_tokens=1000, finish_reason="stop", answer_preview="It says this.",
        )  # fmt: skip

    @classmethod
    def together(cls, conn: sqlite3.Connection, operations: Sequence[Call]) -> None:
        store_records(conn, [(call.row, call.end) for call in operations])


class BareWriter:
    """A thread that commits what is waiting as one group: a text key, an index on the time, the bodies as they are."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._queue: queue.SimpleQueue[tuple[tuple[object, ...], asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={synchronous}")
        columns = "id TEXT PRIMARY KEY, at TEXT, model TEXT, status INTEGER, request BLOB, reply BLOB"
        self._connection.execute(f"CREATE TABLE calls ({columns})")
        self._connection.execute("CREATE INDEX calls_by_time ON calls(at)")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    async def write(self, request: bytes, reply: bytes) -> None:
        """Wait until the row is on disk."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(((new_id(), utc_now(), "m", 200, request, reply), future))
        await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            group = [item]
            while not self._queue.empty() and (more := self._queue.get()) is not None:
                group.append(more)
            self._connection.execute("BEGIN IMMEDIATE")
            for row, _ in group:
                self._connection.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?)", row)
            self._connection.execute("COMMIT")
            group[0][1].get_loop().call_soon_threadsafe(_resolve, [future for _, future in group])


def measure_rates(rounds: int, seconds: float) -> list[Rate]:
    """Both writers in turns, each kind of bodies with FULL and with NORMAL."""
    chance = random.Random(2)
    texts = {"letters": lambda size: words(chance, size).decode(), "prose": lambda size: prose(chance, size)}
    kinds = {
        name: [(_body(text(REQUEST_BYTES)), _body(text(REPLY_BYTES))) for _ in range(BODIES)]
        for name, text in texts.items()
    }
    found = [Rate(name, synchronous) for name in kinds for synchronous in ("FULL", "NORMAL")]
    for turn in range(rounds):
        for rate in found:
            # Who goes first changes, as the second finds the disk busy with what the first left.
            for name in ("reef", "bare") if turn % 2 else ("bare", "reef"):
                measure = _reef if name == "reef" else _bare
                rows = measure(rate.synchronous, kinds[rate.bodies], seconds)
                setattr(rate, name, getattr(rate, name) + rows / rounds)
    return found


def _body(text: str) -> bytes:
    return dumped({"model": "m", "messages": [{"role": "user", "content": text}]})


def _reef(synchronous: str, bodies: list[tuple[bytes, bytes]], seconds: float) -> float:
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as folder:
        writer = Writer(Path(folder) / "reef.db")
        # Not within an operation: SQLite changes this only outside a transaction.
        writer._connection.execute(f"PRAGMA synchronous={synchronous}")

        async def write(request: bytes, reply: bytes) -> None:
            await writer.write(Call(request, reply), size=len(request) + len(reply))

        with closing(writer):
            return asyncio.run(_load(write, bodies, seconds))


def _bare(synchronous: str, bodies: list[tuple[bytes, bytes]], seconds: float) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="reef-bench-") as folder,
        closing(BareWriter(Path(folder) / "bare.db", synchronous)) as writer,
    ):
        return asyncio.run(_load(writer.write, bodies, seconds))


async def _load(write: Write, bodies: list[tuple[bytes, bytes]], seconds: float) -> float:
    """Rows a second, each writer waiting for its row before the next."""
    done = 0
    started = time.perf_counter()

    async def one(place: int) -> None:
        nonlocal done
        while time.perf_counter() - started < seconds:
            await write(*bodies[place % len(bodies)])
            place += WRITERS
            done += 1

    await asyncio.gather(*(one(place) for place in range(WRITERS)))
    return done / (time.perf_counter() - started)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)
