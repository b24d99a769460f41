"""What goes over the wire to an upstream, and what comes back, below the relay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yarl
from multidict import CIMultiDict

from reef.gateway.wire import AT_ONCE, Connections

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
JSON = CIMultiDict({"content-type": "application/json"})
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Upstream:
    """A server that shows the heads it was sent and answers as it is told."""

    def __init__(self, answer: Answer | bytes) -> None:
        self.heads: list[str] = []
        self.connections = 0
        self.url = ""
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                self.heads.append(head)
                if not isinstance(self._answer, bytes):
                    return await self._answer(reader, writer)
                await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0] or 0))
                writer.write(self._answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def upstream(answer: Answer | bytes = OK) -> AsyncIterator[Upstream]:
    found = Upstream(answer)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, limit=4 * 1024 * 1024)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat"
    async with server:
        yield found


@asynccontextmanager
async def connections(kept: bool = True, read_timeout_s: float = 10) -> AsyncIterator[Connections]:
    made = Connections(5, read_timeout_s, kept)
    try:
        yield made
    finally:
        await made.close()


def run(test: Awaitable[Any]) -> Any:
    async def within() -> Any:
        return await asyncio.wait_for(test, 30)

    return asyncio.run(within())


def test_a_connection_whose_reply_was_read_is_used_again_and_any_other_is_not():
    async def test() -> None:
        async with upstream() as server, connections() as calls:
            for _ in range(3):
                async with await calls.send("POST", yarl.URL(server.url), JSON, b"{}") as reply:
                    assert (reply.status, reply.content_length, await reply.read()) == (200, 2, b"ok")
            assert server.connections == 1

        async def half(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok")
            await asyncio.sleep(0.2)

        async with upstream(half) as server, connections() as calls:
            for _ in range(2):
                (await calls.send("POST", yarl.URL(server.url), JSON, b"{}")).release()
            assert server.connections == 2

    run(test())


def test_a_connection_of_one_call_says_that_it_will_be_closed():
    async def test() -> None:
        async with upstream() as server, connections(kept=False) as calls:
            for _ in range(2):
                async with await calls.send("POST", yarl.URL(server.url), JSON, b"{}") as reply:
                    await reply.read()
            assert server.connections == 2
            assert all("connection: close" in head for head in server.heads)

    run(test())


def test_a_plain_call_goes_through_a_proxy_with_its_whole_address_and_the_proxys_own_credentials():
    async def test() -> None:
        async with upstream() as proxy, connections() as calls:
            way = proxy.url.replace("http://", "http://me:secret@").removesuffix("/v1/chat")
            for _ in range(2):
                async with await calls.send("POST", yarl.URL("http://model.test/v1?a=1"), JSON, b"{}", way) as reply:
                    assert await reply.read() == b"ok"
            for head in proxy.heads:
                assert head.startswith("post http://model.test/v1?a=1 http/1.1\r\n")
                assert "host: model.test\r\n" in head
                assert "proxy-authorization: basic " in head and "\r\nauthorization:" not in head

    run(test())


def test_a_user_in_the_address_is_sent_as_credentials_unless_the_call_has_its_own():
    async def test() -> None:
        async with upstream() as server, connections() as calls:
            url = yarl.URL(server.url.replace("http://", "http://me:secret@"))
            for more in ({}, {"authorization": "Bearer key"}):
                async with await calls.send("POST", url, CIMultiDict({**JSON, **more}), b"{}") as reply:
                    await reply.read()
            first, second = server.heads
            assert "authorization: basic " in first and "me:" not in first
            assert "authorization: bearer key" in second and "basic" not in second

    run(test())


def test_calls_to_one_server_under_different_users_do_not_share_credentials():
    async def test() -> None:
        async with upstream() as server, connections() as calls:
            for user in ("a:1", "b:2"):
                url = yarl.URL(server.url.replace("http://", f"http://{user}@"))
                async with await calls.send("POST", url, JSON, b"{}") as reply:
                    await reply.read()
            lines = [next(line for line in head.split("\r\n") if "authorization" in line) for head in server.heads]
            assert lines[0] != lines[1]

    run(test())


def test_an_answer_before_the_whole_of_a_long_request_is_still_the_answer():
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(0.5)

    async def test() -> None:
        async with upstream(refusing) as server, connections() as calls:
            for _ in range(2):
                reply = await calls.send("POST", yarl.URL(server.url), JSON, b"x" * (32 * 1024 * 1024))
                assert (reply.status, await reply.read()) == (413, b"big")
                reply.release()
            # The rest of the request never went out, so nothing else may follow it.
            assert server.connections == 2

    run(test())


def test_a_long_request_arrives_whole():
    seen: list[bytes] = []
    body = bytes(range(256)) * (AT_ONCE // 64)

    async def taking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readexactly(len(body)))
        writer.write(OK)

    async def test() -> None:
        async with upstream(taking) as server, connections() as calls:
            async with await calls.send("POST", yarl.URL(server.url), JSON, body) as reply:
                assert await reply.read() == b"ok"

    run(test())
    assert seen == [body]


def test_what_comes_before_the_reply_itself_is_passed_over():
    async def test() -> None:
        early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        async with upstream(early + OK) as server, connections() as calls:
            async with await calls.send("POST", yarl.URL(server.url), JSON, b"{}") as reply:
                assert (reply.status, await reply.read()) == (200, b"ok")

    run(test())


@pytest.mark.parametrize(
    ("answer", "raised"),
    [(b"this is no HTTP\r\n\r\n", aiohttp.ClientError), (b"", aiohttp.ServerDisconnectedError)],
)
def test_what_is_no_reply_is_a_client_error(answer: bytes, raised: type[Exception]):
    async def saying(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async def test() -> None:
        async with upstream(saying) as server, connections() as calls:
            with pytest.raises(raised):
                await calls.send("POST", yarl.URL(server.url), JSON, b"{}")

    run(test())


def test_a_server_that_says_nothing_is_waited_for_as_long_as_the_settings_say():
    async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async def test() -> None:
        async with upstream(silent) as server, connections(read_timeout_s=0.1) as calls:
            with pytest.raises(TimeoutError):
                await calls.send("POST", yarl.URL(server.url), JSON, b"{}")

    run(test())


def test_a_header_that_would_end_its_line_is_not_sent():
    async def test() -> None:
        async with upstream() as server, connections() as calls:
            with pytest.raises(ValueError):
                await calls.send("POST", yarl.URL(server.url), CIMultiDict({"x": "a\r\nevil: b"}), b"{}")
            assert server.heads == []

    run(test())
