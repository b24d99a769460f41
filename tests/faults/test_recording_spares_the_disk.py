"""B37: recording wears no disk: nothing is written while nothing happens, and no stream is written event by event."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.http.running import Home, chat, wait_for

EVENTS = 5_000
A_MINUTE = 100_000
"""Bytes: a tenth of the megabyte that ten idle minutes may take."""


def written(home: Home) -> int:
    """Bytes that the daemon has had written to a disk."""
    assert home.process is not None
    lines = Path(f"/proc/{home.process.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


@contextmanager
def watching(home: Home) -> Iterator[None]:
    """A TUI that is connected to the daemon, and whose screen somebody reads."""
    ours, theirs = pty.openpty()
    code = "from reef.tui.app import run; raise SystemExit(run())"
    env = home.env | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    screen = subprocess.Popen([sys.executable, "-c", code], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.set_blocking(ours, False)
    painted = bytearray()

    def paint() -> bool:
        with suppress(BlockingIOError):
            painted.extend(os.read(ours, 1 << 20))
        return b"upstream" in painted

    try:
        wait_for(paint, 30)
        yield
        assert screen.poll() is None
    finally:
        screen.kill()
        screen.wait()
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    "seconds", [3, pytest.param(120, marks=[pytest.mark.slow, pytest.mark.timeout(200)])], ids=["a moment", "long"]
)
def test_an_idle_daemon_with_a_screen_open_writes_next_to_nothing(new_home: Callable[..., Home], seconds: int) -> None:
    home = new_home().start()
    chat(home.nobody, "hello")
    with watching(home):
        # What the call left to do, as filling the search index, is not idleness.
        wait_for(lambda: home.person.get("/reef/records/search", params={"q": "hello"}).json().get("pending") == 0)
        time.sleep(1)
        before = written(home)
        time.sleep(seconds)
        assert written(home) - before < max(16_384, A_MINUTE * seconds / 60)


def test_a_stream_of_five_thousand_events_is_one_record_and_a_few_notes_of_its_progress(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    chat(home.nobody, "hello")
    before = written(home)
    started = time.monotonic()
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"[[paced {EVENTS} 0ms]]"}]}
    reply = home.nobody.post("/v1/chat/completions", json=body)
    assert reply.text.count("data: ") > EVENTS
    flushes = time.monotonic() - started + 1
    # A note every second or 64 KB, the row and its end; each is some pages, and one an event would be 20 MB at least.
    assert written(home) - before < 1_000_000 + 200_000 * flushes
    assert home.stop() == 0
