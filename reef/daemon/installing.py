"""Work that takes its time, told line by line: a blocking function in a thread, its progress as NDJSON."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from reef.errors import Failed, ReefError

log = logging.getLogger("reef.daemon")
Json = dict[str, Any]
Progress = Callable[[str], None]
_unfinished: set[asyncio.Task[None]] = set()
"""Work whose client may have hung up; kept from being collected."""


async def tell(
    request: web.Request,
    work: Callable[[Progress], Json],
    after: Callable[[Json], Any] | None = None,
    end: str = "installed",
) -> web.StreamResponse:
    """Answer `{"progress", "seconds"}` lines while `work` runs in a thread, then `{end: …}` or `{"error": …}`.

    `after` is awaited with what `work` returned, before the last line. Work goes on when the client hangs up: half of
    it would be worse.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[Json | None] = asyncio.Queue()
    started = time.monotonic()

    def say(text: str) -> None:
        line = {"progress": text, "seconds": round(time.monotonic() - started, 1)}
        loop.call_soon_threadsafe(lines.put_nowait, line)

    async def run() -> None:
        try:
            done = await asyncio.to_thread(work, say)
            if after is not None:
                await after(done)
            await lines.put({end: done})
        except ReefError as error:
            await lines.put(error.to_json())
        except Exception:
            log.exception("%s failed", request.path)
            await lines.put(Failed("reef failed inside this route", "reef logs").to_json())
        await lines.put(None)

    task = asyncio.create_task(run())
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    reply = web.StreamResponse(headers={"content-type": "application/x-ndjson", "cache-control": "no-store"})
    await reply.prepare(request)
    while (line := await lines.get()) is not None:
        await reply.write(orjson.dumps(line) + b"\n")
    await task
    return reply
