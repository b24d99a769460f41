"""Bodies on their way in: taken and joined so that a large one never stops the loop."""

from __future__ import annotations

import asyncio

from aiohttp import StreamReader, web

from reef.errors import InvalidInput, TooLarge

LARGE = 1024 * 1024
"""Copying more bytes than this at once would be felt by a stream beside it."""


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
