"""Growth: what agent sessions add to the store, beside what had to be kept of them."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.gateway.dialects import DIALECT_OF
from reef.ids import new_id
from reef.records import search, texts
from reef.records.calls import LARGE, OpenRecord, Settlement, attach_request, make_body, open_record, settle_record
from reef.records.reader import Reader
from reef.records.schema import open_store
from reef.records.writer import Writer
from tests.bench.records_sessions import Turn, compressed, dumped, unique_parts

SESSION = "5f0c1a52-6e1b-4f4e-9d55-0c1f6f0e8a77"


@dataclass(frozen=True)
class Growth:
    """One session in a store of its own; bytes."""

    name: str
    calls: int
    raw: int
    """What was sent and answered."""
    parts: int
    """The unique parts, each compressed."""
    grown: int
    """What the store is larger than before."""
    indexed: int
    """The same with the search index filled."""
    whole: int
    """The file, with what an empty store takes."""
    exact: bool
    """Whether every request is given back as it was sent."""


def measure_growth(name: str, dialect: str, turns: list[Turn]) -> Growth:
    """Record a session and look at the store."""
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as folder:
        path = Path(folder) / "reef.db"
        writer = Writer(path)
        with closing(writer):
            empty = settled_size(writer)
            receipts = [record(writer, dialect, turn) for turn in turns]
            grown = settled_size(writer) - empty
            fill_index(writer)
            whole = settled_size(writer)
            indexed = whole - empty
        with closing(Reader(path)) as reader:
            exact = all(
                (reader.request_bytes(receipt), reader.response_bytes(receipt)) == (turn.request, turn.reply)
                for receipt, turn in zip(receipts, turns, strict=True)
            )
        raw = sum(len(turn.request) + len(turn.reply) for turn in turns)
        return Growth(name, len(turns), raw, compressed(unique_parts(turns)), grown, indexed, whole, exact)


def record(writer: Writer, dialect: str, turn: Turn) -> str:
    """One streaming call as the gateway writes it: its row, a large request behind it, then its end."""
    asked, facts = DIALECT_OF[dialect].read_request(turn.request), DIALECT_OF[dialect].read_reply(turn.reply)
    receipt = new_id()
    large = len(turn.request) > LARGE
    row = OpenRecord(
        receipt,
        "default",
        dialect,
        f"/v1{DIALECT_OF[dialect].route}",
        None if large else turn.request,
        model=asked.model,
        streaming=asked.stream,
        session=SESSION,
        adapter="pi",
        version=1,
        engine="upstream",
        load_id="upstream",
        preview=asked.preview or None,
        request_bytes=len(turn.request),
    )
    writer.submit(lambda conn: open_record(conn, row)).result()
    if large:
        body = make_body(turn.request)
        writer.submit(lambda conn: attach_request(conn, receipt, body)).result()
    end = Settlement(
        "complete",
        response=turn.reply,
        status=200,
        first_byte_ms=812.4071,
        duration_ms=2391.2236,
        prompt_tokens=facts.prompt_tokens,
        completion_tokens=facts.completion_tokens,
        cached_tokens=facts.cached_tokens,
        expected_tokens=len(turn.request) // 4,
        finish_reason=facts.finish_reason,
        answer_preview=facts.preview or None,
        reply_name=facts.name,
    )
    writer.submit(lambda conn: settle_record(conn, receipt, end)).result()
    return receipt


def settled_size(writer: Writer) -> int:
    """The file's bytes, once nothing waits beside it and no page of it is free."""
    writer.submit(lambda conn: conn.execute("SELECT 1")).result()
    with closing(open_store(writer.path)) as conn:
        conn.execute("PRAGMA incremental_vacuum").fetchall()
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages, size = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages * size)


def fill_index(writer: Writer) -> None:
    """Index every record, as the daemon does in the background."""

    def some(conn: sqlite3.Connection) -> bool:
        if not search.ready(conn):
            search.begin_anew(conn)
        found = search.next_records(conn, 20)
        search.index(conn, [texts.extract(conn, sequence) for sequence in found])
        return bool(found)

    while writer.submit(some).result():
        continue


def transcript(file: Path) -> Iterator[Turn]:
    """The calls of a session that Claude Code or pi kept: one for each message of the assistant, all before it sent."""
    talk: list[dict[str, Any]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("message")
        if not isinstance(message, dict) or "role" not in message:
            continue
        if message["role"] == "assistant":
            yield Turn(dumped({"model": "m", "messages": talk, "stream": True}), dumped(message))
        talk = [*talk, {"role": message["role"], "content": message.get("content")}]
