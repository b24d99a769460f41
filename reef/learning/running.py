"""The daemon's end of one step's process: start it, read its frames, end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

from reef.errors import Failed
from reef.ids import new_id
from reef.learning import endings, frames, output
from reef.learning.frames import FrameBroken, Result
from reef.paths import ensure_private

MAX_LINES = 2_000
"""Activity lines that one step may send; more are dropped."""
MAX_TEXT = 2_000
"""Characters of one activity line."""

_LAST_WORDS_S = 1.0
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_KIND = re.compile(r"[a-z][a-z_-]{0,23}\Z")


class Listener(Protocol):
    """Who is told what a step sends."""

    async def activity(self, kind: str, text: str, failed: bool) -> None: ...

    async def phase(self, phase: str) -> None: ...

    async def fields(self, fields: Mapping[str, Any]) -> None: ...

    async def episode(self, fields: Mapping[str, Any]) -> None: ...


class StepEnded(Failed):
    """The process ended, or was ended, without a result."""


class StepProcess:
    """One child. `run` may be called once."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None
        self._printed: asyncio.Task[None] | None = None
        self._lines = 0
        self._marker = new_id()
        self._cancelled = False

    async def run(self, job_for: Callable[[int], Awaitable[bytes]], listener: Listener, timeout_s: float) -> Result:
        """Start the process, hand it `job_for(pid)`, and return its result.

        Raises StepEnded when it ends without one or takes longer than `timeout_s`, FrameBroken for what is no frame.
        Whatever happens, no process of the step is left when this returns or raises.
        """
        ensure_private(self._folder)
        log = FileIO(self._folder / output.NAME, "a")
        frames_in, frames_out = os.pipe()
        alive_in, alive_out = os.pipe()
        printed_in, printed_out = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "reef.learning.step"),
                *("--frames", str(frames_out), "--alive", str(alive_in)),
                stdin=asyncio.subprocess.PIPE,
                stdout=printed_out,
                stderr=printed_out,
                cwd=self._folder,
                env=child_environment(self._environ) | {endings.MARKER: self._marker},
                pass_fds=(frames_out, alive_in),
                start_new_session=True,
            )
        except BaseException:
            log.close()
            for handle in (frames_in, alive_out, printed_in):
                os.close(handle)
            raise
        finally:
            for handle in (frames_out, alive_in, printed_out):
                os.close(handle)
        self._printed = asyncio.create_task(output.copy(printed_in, log))
        try:
            if self._cancelled:
                raise StepEnded("the step was ended before it began", "reef steps list")
            return await asyncio.wait_for(self._talk(frames_in, job_for, listener), timeout_s)
        except TimeoutError:
            raise StepEnded(f"the step did not end within {timeout_s:g} s", "reef config show") from None
        finally:
            await asyncio.shield(self._end(alive_out))

    async def cancel(self) -> None:
        """End the process and everything below it; `run` then raises StepEnded."""
        self._cancelled = True
        if self._process is not None and self._process.returncode is None:
            await asyncio.to_thread(endings.end_family, self._process.pid)

    async def _talk(self, frames_in: int, job_for: Callable[[int], Awaitable[bytes]], listener: Listener) -> Result:
        assert self._process is not None and self._process.stdin is not None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=frames.MAX_LINE, loop=loop)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(frames_in, "rb", 0)
        )
        try:
            # A process that dies at once leaves nobody to read the job; its status says more than the broken pipe.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._process.stdin.write(await job_for(self._process.pid))
                await self._process.stdin.drain()
                self._process.stdin.close()
            ended = asyncio.ensure_future(self._process.wait())
            try:
                return await self._read(reader, ended, listener)
            finally:
                ended.cancel()
        finally:
            transport.close()

    async def _read(self, reader: asyncio.StreamReader, ended: asyncio.Future[int], listener: Listener) -> Result:
        while True:
            line = asyncio.ensure_future(reader.readline())
            either: set[asyncio.Future[Any]] = {line, ended}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                # The end of the process is the end of the talk, also while something it left behind holds the pipe.
                await asyncio.wait({line}, timeout=0.5)
            if not line.done() or not (read := _line(line)):
                line.cancel()
                raise StepEnded(_how(await self._status(ended)), "reef steps list")
            frame = frames.parse(read)
            if frame["type"] == "result":
                return frames.result(frame)
            await self._pass_on(frame, listener)

    async def _status(self, ended: asyncio.Future[int]) -> int | None:
        """The exit status; None when the process closed its pipe and goes on."""
        try:
            return await asyncio.wait_for(asyncio.shield(ended), 1.0)
        except TimeoutError:
            return None

    async def _pass_on(self, frame: Mapping[str, Any], listener: Listener) -> None:
        kind = frame["type"]
        if kind == "activity":
            self._lines += 1
            if self._lines <= MAX_LINES:
                word = str(frame.get("kind"))
                text = str(frame.get("text"))[:MAX_TEXT]
                await listener.activity(word if _KIND.match(word) else "activity", text, frame.get("failed") is True)
        elif kind == "phase":
            await listener.phase(str(frame.get("phase")))
        elif kind == "step":
            await listener.fields(frames.early(frame))
        elif kind == "episode" and isinstance(frame.get("fields"), dict):
            await listener.episode(frame["fields"])
        else:
            raise FrameBroken(f"the step sent a frame of the unknown type {kind[:40]!r}")

    async def _end(self, alive_out: int) -> None:
        """Leave nothing behind: the process and whatever was started below it."""
        assert self._process is not None
        if self._process.returncode is None:
            try:
                # After its result the process ends by itself at once.
                await asyncio.wait_for(self._process.wait(), 0.5)
            except TimeoutError:
                await asyncio.to_thread(endings.end_family, self._process.pid)
                await self._process.wait()
        await asyncio.to_thread(endings.end_marked, self._marker)
        os.close(alive_out)
        assert self._printed is not None
        # Whatever still holds the pipe open after that has nothing to say.
        await asyncio.wait({self._printed}, timeout=_LAST_WORDS_S)
        self._printed.cancel()
        await asyncio.to_thread(output.sweep, self._folder)


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The daemon's variables without anything secret, and without git's."""
    return {
        name: value
        for name, value in environ.items()
        if not _SECRET.search(name) and not name.startswith("GIT_") and name not in ("REEF_SERVE", "REEF_SESSION")
    }


def _line(read: asyncio.Future[bytes]) -> bytes:
    """The line, empty at the end of the pipe. Raises FrameBroken for one without an end in sight."""
    try:
        found = read.result()
    except ValueError:
        raise FrameBroken("the step sent a line that is too long to be a frame") from None
    # Bytes without a newline are what a crash left of a frame.
    return found if found.endswith(b"\n") else b""


def _how(status: int | None) -> str:
    if status is None:
        return "the step closed its pipe without a result"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the step's process was ended by {name}, without a result"
    return f"the step's process ended with status {status} and without a result"
