"""Streams that real servers sent, cut into pieces at places that a seed chooses."""

from __future__ import annotations

import random
from pathlib import Path

STREAMS = Path(__file__).parents[1] / "unit/gateway/streams"


def captured(dialect: str) -> bytes:
    """The captured stream of a dialect."""
    return (STREAMS / f"{dialect}.sse").read_bytes()


def pieces_of(stream: bytes, seed: int) -> list[bytes]:
    """`stream` in pieces whose sizes depend on `seed` alone."""
    chance = random.Random(seed)
    longest = chance.choice((1, 7, 60, 500, 5000))
    found, place = [], 0
    while place < len(stream):
        size = chance.randint(1, longest)
        found.append(stream[place : place + size])
        place += size
    return found
