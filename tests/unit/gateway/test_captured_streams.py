"""A stream captured from llama.cpp in each dialect, cut at random places: what goes out is what came, records agree."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from reef.gateway.dialect import Dialect
from reef.gateway.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT
from reef.gateway.streaming import watch_of

STREAMS = Path(__file__).parent / "streams"
SEEDS = 1000
RECEIPT = "0123456789abcdef" * 2


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


def variants(stream: bytes) -> list[bytes]:
    """The same events, framed otherwise: other line ends, no names, no last blank line, comments between."""
    nameless = b"".join(line for line in stream.splitlines(True) if not line.startswith(b"event:"))
    commented = stream.replace(b"\n\n", b"\n\n: ping\n\n")
    return [stream, stream.replace(b"\n", b"\r\n"), nameless, stream.rstrip(), commented]


@pytest.mark.parametrize("dialect", [CHAT_DIALECT, RESPONSES_DIALECT, MESSAGES_DIALECT], ids=lambda found: found.name)
def test_every_cut_gives_the_same_bytes_and_the_same_record(dialect: Dialect) -> None:
    captured = (STREAMS / f"{dialect.name}.sse").read_bytes()
    records = set()
    for variant in variants(captured):
        for seed in range(SEEDS // 5):
            watch, fold = watch_of(dialect), dialect.fold()
            passed = ending = b""
            for piece in pieces_of(variant, seed):
                fold.feed(piece)
                out, end = watch.feed(piece)
                passed, ending = passed + out, ending + end
            out, end = watch.finish()
            passed, ending = passed + out, ending + end
            assert passed + ending == variant and watch.ended
            facts = fold.facts(finished=True)
            assert facts.ended and facts.body is not None
            records.add(facts.body)
            assert RECEIPT.encode() not in ending and RECEIPT.encode() in fold.ending(ending, RECEIPT)
    assert len(records) == 1
    reply = json.loads(records.pop())
    assert reply["usage"]


@pytest.mark.parametrize("dialect", [RESPONSES_DIALECT, MESSAGES_DIALECT], ids=lambda found: found.name)
def test_the_receipt_is_one_member_more_and_no_byte_less(dialect: Dialect) -> None:
    for variant in variants((STREAMS / f"{dialect.name}.sse").read_bytes()):
        watch, fold = watch_of(dialect), dialect.fold()
        fold.feed(variant)
        _, ending = watch.feed(variant)
        if not ending:
            _, ending = watch.finish()
        fold.facts(finished=True)
        marked = fold.ending(ending, RECEIPT)
        assert marked.replace(b',"reef":{"agent_record_id":"%s"}' % RECEIPT.encode(), b"") == ending
        line = next(line for line in marked.splitlines() if line.startswith(b"data:"))
        assert json.loads(line[5:])["reef"] == {"agent_record_id": RECEIPT}
