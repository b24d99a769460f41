"""Large bodies on their way to disk: compressed outside the writer's thread, written in several short transactions.

A 64 MiB body written by one operation would keep every other call's row waiting behind it. Its parts go first, some at
a time; the operation that then stores the chain finds them there.
"""

from __future__ import annotations

import asyncio

from reef.records.calls import Body
from reef.records.packing import pack
from reef.records.parts import missing, put_parts
from reef.records.spans import Span
from reef.records.writer import Writer

BATCH_BYTES = 4 * 1024 * 1024


async def store_parts(writer: Writer, body: Body) -> None:
    """Store those parts of `body` that are new. Raises RecordingFailed; what was stored until then is found again."""
    prepared = body.prepared
    wanted = await writer.write(lambda conn: missing(conn, prepared), essential=False)
    batch: dict[bytes, Span] = {}
    size = 0
    for name, span in prepared.parts():
        if name in wanted and name not in batch:
            batch[name] = span
            size += len(span)
        if size >= BATCH_BYTES:
            await _store(writer, batch)
            wanted -= batch.keys()
            batch, size = {}, 0
    if batch:
        await _store(writer, batch)


async def _store(writer: Writer, batch: dict[bytes, Span]) -> None:
    packed = await asyncio.to_thread(_pack_all, batch)
    size = sum(len(data) for _, _, data in packed.values())
    await writer.write(lambda conn: put_parts(conn, packed), size=size, essential=False)


def _pack_all(batch: dict[bytes, Span]) -> dict[bytes, tuple[int, str, Span]]:
    return {name: (len(span), *pack(span)) for name, span in batch.items()}
