"""Replies of servers that write them in their own way."""

from __future__ import annotations

import asyncio
import json

import pytest

from reef.errors import DaemonUnreachable, ReefError, UpstreamFailed
from reef.native.home import Model
from reef.native.model import Caller, Reply
from tests.fakes.raw_server import DONE, answering, chunk, delta, stream, whole


async def asked(reply: bytes) -> tuple[Reply, str]:
    """What is made of one reply, and the text as it came."""
    said: list[str] = []
    async with answering(reply) as url:
        caller = Caller(Model("m", f"{url}/v1", "key", 8192, 100), "session")
        try:
            found = await asyncio.to_thread(caller.ask, [{"role": "user", "content": "x"}], [], said.append)
        finally:
            caller.close()
    return found, "".join(said)


async def test_calls_without_a_number_or_an_id_are_told_apart() -> None:
    one = delta(tool_calls=[{"function": {"name": "read", "arguments": '{"path": "a"}'}}])
    two = delta(tool_calls=[{"function": {"name": "read", "arguments": {"path": "b"}}}])
    reply, _ = await asked(stream(one, two, chunk({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}), DONE))
    assert [json.loads(call["function"]["arguments"]) for call in reply.calls] == [{"path": "a"}, {"path": "b"}]
    assert len({call["id"] for call in reply.calls}) == 2 and all(call["id"] for call in reply.calls)


async def test_the_pieces_of_a_call_are_put_together() -> None:
    pieces = [
        delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "ba", "arguments": '{"com'}}]),
        delta(tool_calls=[{"index": 0, "function": {"name": "sh", "arguments": 'mand": "ls"}'}}]),
    ]
    reply, _ = await asked(stream(*pieces, DONE))
    assert reply.calls == [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    ]


async def test_a_server_that_does_not_stream_is_read_too() -> None:
    reply, said = await asked(whole())
    assert (reply.text, reply.finish, said) == ("hi", "stop", "hi")


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (whole(b"[]"), ReefError, "no chat completion"),
        (whole(b"<html>", status=b"502 Bad Gateway"), UpstreamFailed, "status 502"),
        (whole(b'{"error": {"message": "no room"}}', status=b"400 Bad Request"), UpstreamFailed, "no room"),
        (stream(b"data: {broken\n\n"), UpstreamFailed, "not JSON"),
        (stream(delta(content="half")), UpstreamFailed, "before its end"),
        (b"", UpstreamFailed, "broke off"),
    ],
)
async def test_what_is_no_reply_is_an_error_in_one_sentence(reply: bytes, kind: type[ReefError], said: str) -> None:
    with pytest.raises(kind, match=said):
        await asked(reply)


def test_nobody_who_answers_means_that_the_daemon_is_not_running() -> None:
    caller = Caller(Model("m", "http://127.0.0.1:9/v1", "key", 8192, 100), "session")
    with pytest.raises(DaemonUnreachable, match="the daemon is not running"):
        caller.ask([], [], lambda piece: None)
    caller.close()
