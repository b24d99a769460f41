"""Reading a copy of a reply that a server compressed although it was asked not to."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

LIMIT_BYTES = 256 * 1024 * 1024


def named(headers: Mapping[str, str]) -> str | None:
    """The encoding of a reply's body, lower-case; None when it is plain."""
    value = headers.get("content-encoding", "").strip().lower()
    return value if value not in ("", "identity") else None


def decoded(encoding: str | None, body: bytes) -> bytes | None:
    """`body` in plain; None when the encoding is not known or the body is not in it."""
    if encoding is None:
        return body
    if encoding in ("gzip", "x-gzip", "deflate"):
        try:
            return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LIMIT_BYTES)
        except zlib.error:
            return None
    if encoding == "zstd":
        import zstandard

        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        except zstandard.ZstdError:
            return None
    return None
