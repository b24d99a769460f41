"""How a part is compressed: with a dictionary, because most parts are too short to say anything of their own twice.

The dictionary knows what the dialects' JSON, prose and code have in common. It spares a quarter of what an agent's
session takes, and a third of the time, as no table of its own is made for each part. A dictionary that stores were
written with is never changed: a better one is another file and another codec.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

import zstandard

from reef.errors import Failed
from reef.records.spans import Span

CODEC = "zstd-1"
"""zstd with the first dictionary. `zstd` is without one, `raw` not compressed at all."""

_SHORT_LEVEL = 1
"""For short bodies, of which there may be thousands in a second: a third less time than the other."""
_LEVEL = 3
"""For the parts of long bodies, of which a call brings few: a twentieth smaller."""
_COMPRESS_FROM = 64
_TOGETHER_FROM = 8
"""Bodies from which on compressing them in one call spares more than the state that such a call makes for itself."""


class _Contexts(threading.local):
    """What zstd works in; each thread needs its own."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor: zstandard.ZstdDecompressor | None = None


_contexts = _Contexts()


def pack(data: Span) -> tuple[str, Span]:
    """`data` as stored: its codec and its bytes, which are `data` itself where compressing does not help."""
    if len(data) >= _COMPRESS_FROM:
        packed = _compressor(_LEVEL).compress(data)
        if len(packed) < len(data):
            return CODEC, packed
    return "raw", data


def pack_short(bodies: list[bytes]) -> list[tuple[str, Span]]:
    """`pack` for several short bodies: sooner done, and without letting go of the interpreter for each."""
    found: list[tuple[str, Span]] = [("raw", body) for body in bodies]
    wanted = [number for number, body in enumerate(bodies) if len(body) >= _COMPRESS_FROM]
    compressor = _compressor(_SHORT_LEVEL)
    if len(wanted) < _TOGETHER_FROM:
        frames = [compressor.compress(bodies[number]) for number in wanted]
    else:
        made = compressor.multi_compress_to_buffer([bodies[number] for number in wanted])
        frames = [made[place].tobytes() for place in range(len(wanted))]
    for number, frame in zip(wanted, frames, strict=True):
        if len(frame) < len(bodies[number]):
            found[number] = CODEC, frame
    return found


def unpack(codec: str, size: int, data: bytes) -> bytes:
    """The `size` bytes that `pack` was given. Raises Failed when they cannot be had back."""
    if codec == "raw":
        return data
    if codec not in (CODEC, "zstd"):
        raise Failed(f"a stored part has the unknown codec {codec!r}", "./install.sh")
    try:
        plain: bytes = _decompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise Failed(f"a stored part cannot be decompressed: {error}", "reef status") from error
    return plain


@lru_cache(maxsize=2)
def dictionary(level: int) -> zstandard.ZstdCompressionDict:
    """The dictionary, made ready for one level, as every thread shares it."""
    found = zstandard.ZstdCompressionDict(Path(__file__).with_name("dictionary_1.zstd").read_bytes())
    found.precompute_compress(level=level)
    return found


def _compressor(level: int) -> zstandard.ZstdCompressor:
    compressor: zstandard.ZstdCompressor | None = _contexts.compressors.get(level)
    if compressor is None:
        compressor = zstandard.ZstdCompressor(level=level, dict_data=dictionary(level))
        _contexts.compressors[level] = compressor
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    """Reads frames without a dictionary as well."""
    if _contexts.decompressor is None:
        _contexts.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary(_LEVEL))
    return _contexts.decompressor
