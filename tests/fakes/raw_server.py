"""A model server that answers every request with the same bytes and closes: for replies that no HTTP library writes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

DONE = b"data: [DONE]\n\n"
REPLY = (
    b'{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
)


def whole(body: bytes = REPLY, head: bytes = b"", status: bytes = b"200 OK") -> bytes:
    """A reply with one JSON body; `head` are further header lines, each with its line end."""
    length = b"content-length: %d\r\n" % len(body)
    return b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\n" + length + head + b"\r\n" + body


def stream(*pieces: bytes) -> bytes:
    """A reply that is a stream of events, each piece a chunk of its own."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def chunk(value: Any) -> bytes:
    """One event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(**fields: Any) -> bytes:
    """One event with a piece of the first choice's message."""
    return chunk({"choices": [{"index": 0, "delta": fields}]})


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[str]:
    """Serve `reply`; gives the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length.group(1)) if length else 0)
            writer.write(reply)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
