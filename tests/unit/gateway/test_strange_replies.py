"""A reply that no server should send still reaches the client, and its record does not pretend to have understood."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.fakes.raw_server import DONE, REPLY, answering, chunk, delta, stream, whole
from tests.unit.gateway.serving import Serving, serving


@asynccontextmanager
async def behind(reply: bytes, folder: Path) -> AsyncIterator[Serving]:
    """A gateway whose model server answers with exactly `reply`."""
    async with answering(reply) as address, serving(folder, engine=UpstreamEngine(address, "m", "sk")) as reef:
        yield reef


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("place", [{"index": [1]}, {"index": {}}, {"id": {"a": 1}}, {"id": ["a"]}], ids=str)
async def test_a_tool_call_under_an_impossible_key_is_relayed_and_the_record_says_that_it_was_not_read(
    tmp_path: Path, place: dict[str, Any]
) -> None:
    call = {**place, "function": {"name": "f", "arguments": "{}"}}
    pieces = delta(content="before "), delta(tool_calls=[call]), delta(content="after"), DONE
    async with behind(stream(*pieces), tmp_path) as reef:
        reply = await reef.chat("hello", stream=True)
        assert not reply.broken
        assert b"".join(pieces[:3]) in reply.body and reply.body.endswith(DONE)
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("failed", 0)
        assert row["error"] == "parts of the model server's stream could not be read"
        assert reef.message_of(row)["content"] == "before after"


async def test_a_fault_in_folding_never_reaches_the_client(tmp_path: Path) -> None:
    # Deeper than anything that walks it step by step can go.
    pieces = delta(content="a"), delta(content="b", extra=nested(900)), delta(extra=nested(900)), DONE
    async with behind(stream(*pieces), tmp_path) as reef:
        reply = await reef.chat("hello", stream=True)
        assert not reply.broken
        assert b"".join(pieces[:3]) in reply.body and reply.body.endswith(DONE)
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("failed", 0)
        assert row["error"] == "the model server's reply could not be read"
        assert (await reef.chat("more", stream=True)).status == 200


async def test_a_fault_in_folding_a_stream_that_nobody_asked_for_is_a_502(tmp_path: Path) -> None:
    pieces = delta(content="b", extra=nested(900)), delta(extra=nested(900)), DONE
    async with behind(stream(*pieces), tmp_path) as reef:
        reply = await reef.chat("hello")
        assert (reply.status, reply.json["error"]["code"]) == (502, "unexpected_stream")
        row = (await reef.settled())[0]
        assert (row["state"], row["error"]) == ("failed", "the model server's reply could not be read")


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((b": hi\n\n", b": hi\n\n"), "the model server's stream holds no reply"),
        ((chunk({"id": "c1", "choices": []}),), "the model server's stream holds no reply"),
        ((delta(content="a"), b"data: not json\n\n"), "parts of the model server's stream could not be read"),
        ((delta(content="a"), b'data: {"choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n'),
         "parts of the model server's stream could not be read"),
        ((chunk([1]), delta(content="a")), "parts of the model server's stream could not be read"),
    ],
    ids=["comments only", "no choice", "no json", "no utf-8", "a list"],
)  # fmt: skip
async def test_a_stream_that_ended_without_a_readable_reply_is_not_complete(
    tmp_path: Path, pieces: tuple[bytes, ...], error: str
) -> None:
    async with behind(stream(*pieces, DONE), tmp_path) as reef:
        reply = await reef.chat("hello", stream=True)
        assert reply.body.startswith(b"".join(pieces)) and reply.body.endswith(DONE)
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"], row["error"]) == ("failed", 0, error)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_header_that_cannot_be_written_is_left_out_and_the_body_arrives(
    tmp_path: Path, streaming: bool
) -> None:
    head = b"x-odd: a\x01b\r\nx-good: caf\xc3\xa9\tb\r\n"
    answer = stream(delta(content="hi"), DONE).replace(b"\r\n", b"\r\n" + head, 1) if streaming else whole(head=head)
    async with behind(answer, tmp_path) as reef:
        reply = await reef.chat("hello", stream=streaming)
        assert reply.status == 200
        assert reply.body.endswith(DONE) if streaming else reply.body == REPLY
        assert reply.headers["x-good"] == "caf\u00e9\tb" and "x-odd" not in reply.headers
        assert (await reef.settled())[0]["state"] == "complete"


async def test_an_upstream_that_changes_the_protocol_is_a_502(tmp_path: Path) -> None:
    switching = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\nraw bytes"
    async with behind(switching, tmp_path) as reef:
        reply = await reef.chat("hello")
        assert reply.status == 502 and "101" in reply.json["error"]["message"]
        row = (await reef.settled())[0]
        assert (row["state"], row["status"]) == ("failed", 502)
