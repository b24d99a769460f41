"""A body of 64 MiB goes by and is recorded while other calls go on: neither the loop nor the interpreter is held."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reef.engines.upstream import UpstreamEngine
from reef.gateway.chat import ChatDialect
from reef.gateway.dialect import ReplyFacts
from reef.gateway.requests import with_model
from reef.gateway.scan import SCAN_ABOVE
from reef.records.calls import make_body
from tests.unit.gateway.serving import serving

SIZE = 60 * 1024 * 1024
KEY = "sk-" + "a1B2" * 6
HELD_MS = 40.0
"""More than a machine needs for any step that is cut well, less than one pass over 64 MiB takes."""


@cache
def talk() -> bytes:
    """A conversation with a key in it."""
    messages = [
        {"role": "user", "content": f'{number} {{"some": "text"}}\n' * 1000} for number in range(SIZE // 27_000)
    ]
    messages[len(messages) // 2]["content"] = f"my key is {KEY}"
    return json.dumps({"messages": messages}).encode()


@cache
def image() -> bytes:
    """One image."""
    return b'{"messages":[{"role":"user","content":"' + os.urandom(SIZE // 2).hex().encode() + b'"}]}'


@cache
def reply() -> bytes:
    """A reply that is as long."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "first line\n" + "word \\ " * (SIZE // 9), "tool_calls": [call]}
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps({"id": "x", "choices": choices, "usage": usage}).encode()


WORK: dict[str, Callable[[], object]] = {
    "reading a conversation": lambda: ChatDialect().read_request(talk()),
    "reading an image": lambda: ChatDialect().read_request(image()),
    "reading a reply": lambda: ChatDialect().read_reply(reply()),
    "putting a model in": lambda: with_model(talk(), "m"),
    "preparing a conversation": lambda: make_body(talk()),
    "preparing an image": lambda: make_body(image()),
}


@pytest.mark.parametrize("what", WORK)
def test_no_step_of_the_work_beside_the_loop_holds_the_interpreter(what: str) -> None:
    talk(), image(), reply()
    # The best of three: a busy machine may leave this thread waiting for reasons of its own.
    assert any(held_ms(WORK[what]) < HELD_MS for _ in range(3))


def held_ms(work: Callable[[], object]) -> float:
    """The most processor time that `work` takes in another thread without letting this one run."""
    begin = threading.Event()
    thread = threading.Thread(target=lambda: (begin.wait(), work(), time.sleep(0.05)))
    thread.start()
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    longest, last = 0.0, time.clock_gettime(clock)
    begin.set()
    while thread.is_alive():
        time.sleep(0.0005)
        try:
            now = time.clock_gettime(clock)
        except OSError:
            break
        longest, last = max(longest, now - last), now
    thread.join()
    return longest * 1000


@pytest.mark.parametrize("make", [talk, image])
async def test_the_loop_itself_never_works_long_on_a_large_request(tmp_path: Path, make: Callable[[], bytes]) -> None:
    body = make()
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--port", "0"]
    upstream = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert upstream.stdout is not None
        address = upstream.stdout.readline().split()[1]
        async with serving(tmp_path, engine=UpstreamEngine(address, "default-model")) as server:
            longest = 0.0
            for turn in (1, 2):
                worked = asyncio.ensure_future(longest_turn_ms())
                received = await asyncio.to_thread(send, server.url, body)
                assert received.startswith(b"HTTP/1.1 200 OK\r\n")
                rows = await server.settled(turn, seconds=30)
                worked.cancel()
                longest = await worked
                assert rows[-1]["request_bytes"] >= len(body)
                if longest < HELD_MS:
                    break
            assert longest < HELD_MS
    finally:
        upstream.kill()
        upstream.wait()


async def test_the_loop_itself_never_works_long_on_many_events_at_once(tmp_path: Path) -> None:
    event = b'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    burst = event * 40_000 + b"data: [DONE]\n\n"
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        threading.Thread(target=answer, args=(upstream, burst), daemon=True).start()
        address = f"http://127.0.0.1:{upstream.getsockname()[1]}"
        async with serving(tmp_path, engine=UpstreamEngine(address, "default-model", dialects=("chat",))) as server:
            longest = 0.0
            for turn in (1, 2):
                worked = asyncio.ensure_future(longest_turn_ms())
                received = await asyncio.to_thread(send, server.url, b'{"messages":[],"stream":true}')
                worked.cancel()
                longest = await worked
                assert received.count(b'"word "') == 40_000
                assert (await server.settled(turn))[-1]["state"] == "complete"
                if longest < HELD_MS:
                    break
            assert longest < HELD_MS


def answer(upstream: socket.socket, events: bytes) -> None:
    """Answer every call with the same events in one write, until the socket is closed."""
    while True:
        try:
            connection, _ = upstream.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            connection.sendall(head + events)


async def longest_turn_ms() -> float:
    """The most processor time of this thread between two turns of the loop, until cancelled."""
    longest, last = 0.0, time.thread_time()
    while True:
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            return longest * 1000
        now = time.thread_time()
        longest, last = max(longest, now - last), now


def send(url: str, body: bytes) -> bytes:
    """Make a call from another thread; returns all that comes back."""
    place = urlsplit(url)
    assert place.port is not None
    with socket.create_connection((place.hostname, place.port)) as connection:
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
        )
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode())
        connection.sendall(body)
        received = bytearray()
        while piece := connection.recv(65536):
            received += piece
    return bytes(received)


def test_a_very_large_reply_has_the_same_facts_as_a_small_one() -> None:
    small = json.loads(reply())
    small["choices"][0]["message"]["content"] = small["choices"][0]["message"]["content"][:100]
    body = json.dumps(small).encode()
    assert len(body) < SCAN_ABOVE < len(reply())
    expected, found = ChatDialect().read_reply(body), ChatDialect().read_reply(reply())
    assert found == ReplyFacts(reply(), True, None, "stop", "first line", 5, 7, 3)
    assert (expected.preview, expected.finish_reason) == (found.preview, found.finish_reason)


def test_a_very_large_reply_without_text_shows_its_calls_and_an_error_its_message() -> None:
    whole = json.loads(reply())
    whole["padding"] = whole["choices"][0]["message"].pop("content")
    assert ChatDialect().read_reply(json.dumps(whole).encode()).preview == "look({})"
    error = json.dumps({"error": {"message": "no"}, "padding": whole["padding"]}).encode()
    assert ChatDialect().read_reply(error).error == "no"
    for strange in ({"choices": [1]}, {"choices": []}, {"choices": [{"message": 1}]}):
        body = json.dumps({**strange, "padding": whole["padding"]}).encode()
        assert ChatDialect().read_reply(body).preview == ""
