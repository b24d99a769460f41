"""The model that needs nothing else: SmolLM2-135M-Instruct on llama.cpp, in a child process of the daemon.

The child is started again when it ends by itself; after too many ends in a short time the engine stays `failed` and
says why. Ending the child is what frees the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
import time
from collections import deque
from typing import Any

from reef.engines import weights
from reef.engines.engine import CHAT, MESSAGES, RESPONSES, EngineHealth, OnChange
from reef.errors import Failed, ReefError, Unavailable, UpstreamFailed
from reef.ids import new_id
from reef.paths import Paths

CONTEXT = 8192
ANSWER_TOKENS = 1024
"""Where a request sets no limit. A model of this size may go on until its window is full, for minutes."""
START_LIMIT_S = 120.0
STOP_LIMIT_S = 2.0
RETRY_AFTER_S = 10.0
MAX_ENDS = 5
ENDS_WINDOW_S = 120.0
_NOT_STARTED = EngineHealth("down", "not started")
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_WAIT_POLICY")


def thread_count(environ: dict[str, str] | None = None) -> int:
    """Threads for the model: all cores but one, one in CI, because spinning threads on a busy core are very slow."""
    env = dict(os.environ) if environ is None else environ
    if env.get("CI", "").lower() == "true":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


class EmbeddedEngine:
    """The embedded model: fetches its weights once, runs one child, and brings it back when it falls over."""

    name = "embedded"
    model = weights.SMOLLM2.name
    dialects = frozenset({CHAT, RESPONSES, MESSAGES})
    context_window: int | None = CONTEXT
    proxy: str | None = None

    def __init__(self, paths: Paths, on_change: OnChange | None = None) -> None:
        self._paths = paths
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
    def breaks_off(self) -> bool:
        return False

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
            self._set(EngineHealth("starting", "the embedded model is starting"))
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

    async def probe(self) -> list[str]:
        if self._health.state != "ready":
            raise UpstreamFailed(self._health.detail, self._health.hint)
        return [self.model]

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
            await self._fetch()
            while True:
                reason = await self._one_life()
                if self._refusal is not None:
                    # What a model file or a missing library makes impossible does not get better by trying again.
                    raise Failed(f"the embedded model cannot be loaded: {self._refusal}", "./install.sh")
                ends.append(time.monotonic())
                if len(ends) == MAX_ENDS and ends[-1] - ends[0] < ENDS_WINDOW_S:
                    self._fail(f"the embedded model keeps ending: {reason}", "reef logs")
                    return
                self._set(EngineHealth("starting", f"the embedded model ended ({reason}) and is starting again"))
                await asyncio.sleep(min(0.2 * 2 ** len(ends), 5.0))
        except ReefError as error:
            self._fail(error.message, error.hint)

    def _fail(self, reason: str, hint: str | None) -> None:
        self._failed_at = time.monotonic()
        self._set(EngineHealth("failed", reason, hint))

    async def _fetch(self) -> None:
        def progress(done: int, total: int) -> None:
            size = f"{done // 1_000_000} of {total // 1_000_000} MB"
            self._set(EngineHealth("starting", f"fetching the embedded model, {size}"))

        await weights.fetch(self._paths, progress)
        self._set(EngineHealth("starting", "the embedded model is starting"))

    async def _one_life(self) -> str:
        """Run one child from start to end. Returns why it ended; when cancelled the child is gone before this ends."""
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "reef.engines.embedded_worker",
                str(write_end),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(write_end,),
                start_new_session=True,
                env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
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
        job = {
            "model": str(weights.model_file(self._paths)),
            "alias": self.model,
            "context": CONTEXT,
            "slots": 1,
            "answer": ANSWER_TOKENS,
            "threads": thread_count(),
            "key": self._key,
        }
        reader = asyncio.StreamReader()
        pipe = os.fdopen(read_end, "rb", buffering=0)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(job).encode() + b"\n")
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
        return f"{ended}: {said}" if said else ended

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
