"""An engine that is a child process of the daemon: started, watched, brought back when it falls over, ended with it.

The child gets its job as one line on standard input, says where it listens in one line on an inherited pipe, and ends
when standard input closes. After too many ends in a short time the engine stays `failed` and says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from reef.credentials import clean
from reef.engines.engine import CHAT, EngineHealth, OnChange
from reef.errors import Failed, ReefError, Unavailable, UpstreamFailed
from reef.ids import new_id

START_LIMIT_S = 120.0
STOP_LIMIT_S = 2.0
RETRY_AFTER_S = 10.0
MAX_ENDS = 5
ENDS_WINDOW_S = 120.0
_NOT_STARTED = EngineHealth("down", "not started")


class ChildEngine(ABC):
    """Runs one child, and brings it back when it falls over."""

    name: str
    model: str | None
    dialects: frozenset[str]
    context_window: int | None = None
    proxy: str | None = None
    _worker: str
    """The module that the child runs; it gets the number of a descriptor to report to."""
    _what: str
    """What the child is, for people: `the embedded model`."""
    _mends: str
    """The command that helps when the child cannot load what it needs."""

    def __init__(self, on_change: OnChange | None = None) -> None:
        self._on_change = on_change
        self._health = _NOT_STARTED
        self._address = ""
        self._key = secrets.token_urlsafe(24)
        self._incarnation: str | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._last_lines: deque[str] = deque(maxlen=20)
        self._refusal: str | None = None
        self._failed_at = 0.0

    @property
    def base_url(self) -> str:
        return self._address + "/v1"

    @property
    def older_spellings(self) -> bool:
        return False

    @property
    def takes_effort(self) -> bool:
        return False

    @property
    def breaks_off(self) -> bool:
        return False

    @property
    def own(self) -> bool:
        return False

    def too_long(self, body: bytes) -> str | None:
        return None

    @property
    def load_id(self) -> str | None:
        return f"{self._incarnation}:1" if self._incarnation else None

    @property
    def pid(self) -> int | None:
        """Process id of the child, None when there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    def url(self, route: str, query: str = "") -> str:
        return f"{self.base_url}{route}{'?' + query if query else ''}"

    def headers(self, dialect: str = CHAT) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"}

    async def start(self) -> None:
        if self._task is None or self._task.done():
            self._set(EngineHealth("starting", f"{self._what} is starting"))
            self._task = asyncio.create_task(self._run(), name="embedded engine")

    async def ready(self, wait_s: float) -> None:
        if self._health is _NOT_STARTED:
            # The call that is the first to want this engine may come before the task that starts it.
            await self.start()
        if self._health.state == "failed" and time.monotonic() - self._failed_at > RETRY_AFTER_S:
            # What failed for want of a network is worth another try when somebody calls again.
            failed = self._health
            await self.start()
            raise Unavailable(failed.detail, failed.hint)
        end = time.monotonic() + wait_s
        while self._health.state != "ready":
            if self._health.state != "starting":
                raise Unavailable(self._health.detail, self._health.hint)
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), max(0.0, end - time.monotonic()))
            except TimeoutError:
                raise Unavailable(self._health.detail, "reef status") from None

    async def find_dialects(self) -> frozenset[str] | None:
        return self.dialects

    async def health(self) -> EngineHealth:
        return self._health

    def observed(self, problem: str | None) -> None:
        """The child's own end is what counts; a call that failed says nothing new."""
        return None

    async def probe(self) -> list[str]:
        if self._health.state != "ready":
            raise UpstreamFailed(self._health.detail, self._health.hint)
        return [self.model] if self.model else []

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._set(EngineHealth("down", "stopped"))

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "model": self.model,
            "state": self._health.state,
            "detail": self._health.detail,
            "url": self.base_url if self._address else None,
            "dialects": sorted(self.dialects),
            "context_window": self.context_window,
        }

    async def _run(self) -> None:
        ends: deque[float] = deque(maxlen=MAX_ENDS)
        try:
            await self._prepare()
            self._set(EngineHealth("starting", f"{self._what} is starting"))
            while True:
                reason = await self._one_life()
                if self._refusal is not None:
                    # What a model file or a missing library makes impossible does not get better by trying again.
                    raise Failed(f"{self._what} cannot be loaded: {self._refusal}", self._mends)
                ends.append(time.monotonic())
                if len(ends) == MAX_ENDS and ends[-1] - ends[0] < ENDS_WINDOW_S:
                    self._fail(f"{self._what} keeps ending: {reason}", "reef logs")
                    return
                self._set(EngineHealth("starting", f"{self._what} ended ({reason}) and is starting again"))
                await asyncio.sleep(min(0.2 * 2 ** len(ends), 5.0))
        except ReefError as error:
            self._fail(error.message, error.hint)

    def _fail(self, reason: str, hint: str | None) -> None:
        self._failed_at = time.monotonic()
        self._set(EngineHealth("failed", reason, hint))

    async def _prepare(self) -> None:
        """Get what the child needs before its first life. Raises ReefError."""
        return None

    @abstractmethod
    def _job(self) -> dict[str, Any]:
        """The child's job, as JSON; no secret but the key that calls to the child carry."""

    @abstractmethod
    def _environment(self) -> dict[str, str]:
        """The child's whole environment."""

    async def _one_life(self) -> str:
        """Run one child from start to end. Returns why it ended; when cancelled the child is gone before this ends."""
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                self._worker,
                str(write_end),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(write_end,),
                start_new_session=True,
                env=self._environment(),
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._process = process
        self._last_lines.clear()
        self._refusal = None
        listening = asyncio.create_task(self._listen(process, read_end))
        try:
            await self._keep_errors(process)
            code = await process.wait()
        finally:
            listening.cancel()
            self._incarnation = None
            await _end(process)
            self._process = None
        return self._reason(code)

    async def _listen(self, process: asyncio.subprocess.Process, read_end: int) -> None:
        """Hand the child its job and take its one line."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(read_end, "rb", buffering=0)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps({**self._job(), "key": self._key}).encode() + b"\n")
            line = await asyncio.wait_for(reader.readline(), START_LIMIT_S)
            fact = json.loads(line) if line else {}
        except TimeoutError:
            self._last_lines.append(f"it did not listen within {START_LIMIT_S:.0f} s")
            process.kill()
            return
        except ConnectionError:
            return
        finally:
            transport.close()
        if "error" in fact:
            self._refusal = str(fact["error"])
        if "listening" in fact:
            self._address = fact["listening"]
            self._incarnation = new_id()[:12]
            self._set(EngineHealth("ready"))

    async def _keep_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(4096):
            self._last_lines += [line.strip()[:300] for line in piece.decode("utf-8", "replace").splitlines()]

    def _reason(self, code: int) -> str:
        ended = f"signal {-code}" if code < 0 else f"exit status {code}"
        said = next((line for line in reversed(self._last_lines) if line), "")
        # What a library says of a refused call may hold the key.
        return f"{ended}: {clean(said)}" if said else ended

    def _set(self, health: EngineHealth) -> None:
        if health == self._health:
            return
        self._health = health
        woken, self._changed = self._changed, asyncio.Event()
        woken.set()
        if self._on_change is not None:
            self._on_change(health)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close the child's standard input, which ends it, and kill it when that takes too long."""
    if process.returncode is not None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_LIMIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
