"""A stream captured from llama.cpp in each dialect, cut at random places: what goes out is what came, records agree."""

from __future__ import annotations

import json

import pytest

from reef.gateway.dialect import Dialect
from reef.gateway.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT
from reef.gateway.streaming import watch_of
from tests.fakes.replay import captured, pieces_of

SEEDS = 1000
RECEIPT = "0123456789abcdef" * 2


def variants(stream: bytes) -> list[bytes]:
    """The same events, framed otherwise: other line ends, no names, no last blank line, comments between."""
    nameless = b"".join(line for line in stream.splitlines(True) if not line.startswith(b"event:"))
    commented = stream.replace(b"\n\n", b"\n\n: ping\n\n")
    return [stream, stream.replace(b"\n", b"\r\n"), nameless, stream.rstrip(), commented]


@pytest.mark.parametrize("dialect", [CHAT_DIALECT, RESPONSES_DIALECT, MESSAGES_DIALECT], ids=lambda found: found.name)
def test_every_cut_gives_the_same_bytes_and_the_same_record(dialect: Dialect) -> None:
    records = set()
    for variant in variants(captured(dialect.name)):
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
    for variant in variants(captured(dialect.name)):
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
