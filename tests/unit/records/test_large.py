"""Bodies of 64 MiB: exact, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import json
import os
import time

import pytest

from reef.ids import new_id
from reef.records.calls import OpenRecord, Settlement, attach_request, make_body, open_record, settle_record
from reef.records.large import store_parts
from reef.records.reader import Reader
from reef.records.writer import Writer

SIZE = 64 * 1024 * 1024


def small(receipt: str) -> OpenRecord:
    return OpenRecord(receipt, "default", "chat", "/v1", b'{"messages":[{"role":"user","content":"hi"}]}')


SLOW = pytest.mark.slow


@pytest.mark.parametrize("kind", ["image", pytest.param("talk", marks=SLOW), pytest.param("noise", marks=SLOW)])
async def test_sixty_four_mebibytes_come_back_exactly(writer: Writer, reader: Reader, kind: str) -> None:
    if kind == "image":
        raw = b'{"messages":[{"content":"data:' + os.urandom(SIZE // 2 - 40).hex().encode() + b'"}]}'
    elif kind == "talk":
        talk = [{"role": "user", "content": f"{n} " * 3000} for n in range(3800)]
        raw = json.dumps({"messages": talk}).encode()
    else:
        raw = os.urandom(SIZE)
    receipt = new_id()
    call = OpenRecord(receipt, "default", "chat", "/v1", None, request_bytes=len(raw))
    await writer.write(lambda conn: open_record(conn, call))
    body = await asyncio.to_thread(make_body, raw)
    await store_parts(writer, body)
    await writer.write(lambda conn: attach_request(conn, receipt, body))
    await writer.write(lambda conn: settle_record(conn, receipt, Settlement("complete", response=b"{}")))
    assert reader.record(receipt)["request_bytes"] == len(raw)
    assert reader.request_bytes(receipt) == raw


async def test_other_calls_are_recorded_while_a_large_body_is_written(writer: Writer) -> None:
    raw = json.dumps({"messages": [{"content": os.urandom(4_000_000).hex()} for _ in range(8)]}).encode()
    body = await asyncio.to_thread(make_body, raw)
    waits: list[float] = []
    done = asyncio.Event()

    async def others() -> None:
        while not done.is_set():
            started = time.perf_counter()
            await writer.write(lambda conn: open_record(conn, small(new_id())))
            waits.append(time.perf_counter() - started)
            await asyncio.sleep(0.005)

    others_running = asyncio.ensure_future(others())
    await store_parts(writer, body)
    receipt = new_id()
    await writer.write(lambda conn: open_record(conn, OpenRecord(receipt, "default", "chat", "/v1", body)))
    done.set()
    await others_running
    # The 64 MiB take many groups, and the small rows go in between: many of them, and none behind all of it.
    assert len(waits) > 10
    assert sorted(waits)[len(waits) // 2] < 0.5


async def test_parts_that_are_stored_are_not_compressed_or_written_again(writer: Writer, reader: Reader) -> None:
    talk = [{"content": os.urandom(3000).hex()} for _ in range(200)]
    for length in (199, 200):
        body = make_body(json.dumps({"messages": talk[:length]}).encode())
        await store_parts(writer, body)
        before = reader._all("SELECT count(*), max(sequence) FROM parts")[0]
        await writer.write(lambda conn, body=body: open_record(conn, OpenRecord(new_id(), "d", "chat", "/v1", body)))  # type: ignore[misc]
        assert reader._all("SELECT count(*), max(sequence) FROM parts")[0] == before
    assert reader._all("SELECT count(*) FROM parts")[0][0] < 210
