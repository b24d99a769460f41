"""Bodies on their way through: taken in, joined and handed on so that a large one never stops the loop."""

from __future__ import annotations

import asyncio

from aiohttp import StreamReader, payload, web
from aiohttp.abc import AbstractStreamWriter

from reef.errors import InvalidInput, TooLarge

LARGE = 1024 * 1024
"""Copying more bytes than this at once would be felt by a stream beside it."""
_PIECE = 64 * 1024


async def received(content: StreamReader, limit: int) -> bytes:
    """A whole body of at most `limit` bytes.

    Raises TooLarge, InvalidInput for a broken encoding, and what reading raises when the sender leaves.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := await content.readany():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise TooLarge(f"the request is larger than {limit >> 20} MiB")
    except web.RequestPayloadError:
        raise InvalidInput("the request's body is not encoded as its headers say") from None
    return await joined(pieces, size)


async def joined(pieces: list[bytes], size: int) -> bytes:
    """`pieces`, `size` bytes together, as one."""
    if len(pieces) == 1:
        return pieces[0]
    # Joining much lets go of the interpreter, so in a thread it stops nobody.
    return await asyncio.to_thread(b"".join, pieces) if size > LARGE else b"".join(pieces)


def outgoing(body: bytes) -> bytes | payload.Payload:
    """`body` as the client library takes it."""
    return _InPieces(body) if len(body) > LARGE else body


class _InPieces(payload.Payload):
    """A body that is sent piece by piece, the loop having its turn in between; nothing of it is copied."""

    _value: bytes
    _autoclose = True

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        view = memoryview(self._value)[:content_length]
        for place in range(0, len(view), _PIECE):
            await writer.write(view[place : place + _PIECE])
            await asyncio.sleep(0)
