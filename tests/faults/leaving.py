"""A client that hangs up at a moment of its choice, over a bare connection, and what a process holds meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.gateway.serving import DIALECTS, PATHS, asking

SCENARIOS = ("", "/s/translated")
ENDS = {
    "a": ("hello there", "whole"),
    "b": ("[[paced 20 2ms]]", "whole"),
    "c": ("hello there", "half"),
    "d": ("[[slow 20s]]", "sent"),
    "e": ("[[slow first 20s]]", "sent"),
    "f": ("[[slow 20s]]", "soon"),
    "g": ("[[slow first 20s]]", "head"),
    "h": ("[[paced 2000 10ms]]", "words"),
    "i": ("[[paced 20 2ms]]", "words"),
}
"""What the model server is told, and when the client leaves: never, with half of its request sent, at once, a moment
later, with the headers of the reply, with its first words."""
_STREAMED = ("head", "words")
"""Moments that only a stream has."""
PATIENCE_S = 60


@dataclass(frozen=True)
class Plan:
    """One call, as a seed wants it."""

    path: str
    body: bytes
    until: str
    abrupt: bool
    pause: float


def plan(number: int) -> Plan:
    """The call of this number."""
    chance = random.Random(number)
    words, until = ENDS[chance.choice("aaabcdefghhi")]
    dialect = chance.choice(DIALECTS)
    stream = until in _STREAMED or chance.random() < 0.5
    body = json.dumps(asking(dialect, f"call {number} {words} {'x' * chance.randint(0, 3000)}", stream=stream))
    path = chance.choice(SCENARIOS) + PATHS[dialect]
    return Plan(path, body.encode(), until, chance.random() < 0.5, chance.random() * 0.05)


class Client:
    """One connection after the other to a port of this machine; kept while calls are answered whole."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def call(self, plan: Plan) -> int | None:
        """Make one call as planned; its status when it was answered whole."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._call(plan)
        except TimeoutError:
            raise AssertionError(f"{plan.path} {plan.body[:150]!r} stood still until {plan.until}") from None

    async def _call(self, plan: Plan) -> int | None:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        assert self.reader is not None
        head = f"POST {plan.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(plan.body)}\r\n\r\n".encode())
        self.writer.write(plan.body[: len(plan.body) // 2] if plan.until == "half" else plan.body)
        await self.writer.drain()
        if plan.until == "whole":
            return await self._whole(self.reader)
        if plan.until in ("soon", "half"):
            await asyncio.sleep(plan.pause)
        elif plan.until in _STREAMED:
            status = int((await self.reader.readuntil(b"\r\n\r\n")).split()[1])
            if status != 200:
                raise AssertionError(f"{plan.path} was answered with {status}: {await self.reader.read(1000)!r}")
            if plan.until == "words":
                await self.reader.readuntil(b"word0")
        await self.leave(plan.abrupt)
        return None

    async def leave(self, abrupt: bool = False) -> None:
        """Close the connection: with a reset when `abrupt`."""
        if self.writer is None:
            return
        if abrupt:
            self.writer.transport.abort()
        self.writer.close()
        self.writer = None

    async def _whole(self, reader: asyncio.StreamReader) -> int:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length: " in head:
            if b" 200 " not in head:
                print("BADW", head)
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        else:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                await reader.readexactly(size + 2)
            await reader.readexactly(2)
        return int(head.split()[1])


def rss_mb(pid: int) -> float:
    """The memory of a process."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def connections(pid: int, port: int) -> int:
    """How many sockets of a process are connections to a port, in whatever state."""
    own = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:
            continue
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(row[9] in own and int(row[2].rpartition(":")[2], 16) == port for row in rows)


def unended(log: Path) -> list[dict[str, Any]]:
    """The calls at which a scripted model server still works."""
    running: dict[int, dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "request":
            running[event["number"]] = event
        elif event["event"] == "end":
            running.pop(event["number"])
    return list(running.values())
