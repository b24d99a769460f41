"""A store of many records: how long a page of the list, a search and one record take to read."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from reef.ids import new_id
from reef.records import search
from reef.records.calls import OpenRecord, Settlement, store_records
from reef.records.reader import Reader
from reef.records.texts import extract
from reef.records.writer import Writer
from tests.bench.records_sessions import dumped, prose

SESSIONS = 500
AT_ONCE = 200
PAGE = 100
MODELS = ("reef-model", "reef-large", "reef-small")


@dataclass(frozen=True)
class Wait:
    """How long one kind of question takes; milliseconds."""

    kind: str
    """`list`, `search` or `open`."""
    name: str
    p50: float
    p95: float


def fill(path: Path, count: int) -> list[str]:
    """A store with `count` indexed records of some hundred bytes; returns some of their receipts."""
    chance = random.Random(3)
    receipts: list[str] = []
    with closing(Writer(path)) as writer:
        for start in range(0, count, AT_ONCE):
            calls = [_call(chance, number, count) for number in range(start, min(count, start + AT_ONCE))]
            receipts.append(calls[0][0].receipt)
            writer.submit(lambda conn, calls=calls: store_records(conn, calls)).result()  # type: ignore[misc]
        while writer.submit(_index_some).result():
            continue
    return receipts


def measure_waits(path: Path, receipts: list[str], repeat: int) -> list[Wait]:
    """Ask everything `repeat` times, each time about another place."""
    chance = random.Random(5)
    found = []
    with closing(Reader(path)) as reader:
        newest = int(reader.records(limit=1)[0]["sequence"])
        middle = str(reader.record(receipts[len(receipts) // 2])["started_at"])
        words = sorted({word for word in prose(chance, 20_000).split() if word.isalpha() and len(word) > 6})
        asked: list[tuple[str, str, Callable[[], object]]] = [
            ("list", "newest", lambda: reader.records(limit=PAGE)),
            ("list", "any page", lambda: reader.records(limit=PAGE, before=chance.randrange(PAGE, newest))),
            ("list", "a session", lambda: reader.records(limit=PAGE, session=f"session-{chance.randrange(SESSIONS)}")),
            ("list", "a model", lambda: reader.records(limit=PAGE, model=chance.choice(MODELS))),
            ("list", "failed", lambda: reader.records(limit=PAGE, failed=True)),
            ("list", "since a time", lambda: reader.records(limit=PAGE, since=middle)),
            ("search", "a word", lambda: reader.search(chance.choice(words))),
            ("search", "two words", lambda: reader.search(" ".join(chance.sample(words, 2)))),
            ("search", "a rare word", lambda: reader.search(f"number{chance.randrange(newest)}")),
            ("search", "in a session", lambda: reader.search(chance.choice(words), session="session-7")),
            ("search", "no such word", lambda: reader.search("zyxwvutsr")),
            ("open", "a record", lambda: reader.record(chance.choice(receipts))),
            ("open", "its request", lambda: reader.request_bytes(chance.choice(receipts))),
        ]
        for kind, name, ask in asked:
            ask()
            times = sorted(_timed(ask) for _ in range(repeat))
            found.append(Wait(kind, name, times[len(times) // 2], times[int(len(times) * 0.95)]))
    return found


def _timed(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return (time.perf_counter() - started) * 1000


def _call(chance: random.Random, number: int, count: int) -> tuple[OpenRecord, Settlement]:
    asked = f"{prose(chance, 300)} number{number}"
    said = prose(chance, 200)
    row = OpenRecord(
        new_id(), "default", "chat", "/v1/chat/completions", dumped({"messages": [{"role": "user", "content": asked}]}),
        model=MODELS[number % 3], session=f"session-{number * SESSIONS // count}", adapter="pi", version=1,
        engine="upstream", preview=asked[:60],
    )  # fmt: skip
    reply = {"choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
    state = "failed" if number % 97 == 0 else "complete"
    return row, Settlement(state, response=dumped(reply), status=200, duration_ms=900.5, answer_preview=said[:60])  # type: ignore[arg-type]


def _index_some(conn: sqlite3.Connection) -> bool:
    if not search.ready(conn):
        search.begin_anew(conn)
    found = search.next_records(conn, AT_ONCE)
    search.index(conn, [extract(conn, sequence) for sequence in found])
    return bool(found)
