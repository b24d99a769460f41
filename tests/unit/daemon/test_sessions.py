"""Sessions end with their process, and with nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reef.daemon.sessions import Session, Sessions
from reef.paths import Paths
from reef.processes import start_time
from reef.records.writer import Writer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")


async def test_a_session_outlives_a_clock_that_is_set_and_a_restart_of_the_daemon(paths: Paths) -> None:
    process = subprocess.Popen(["sleep", "60"])
    writer = Writer(paths.database)
    try:
        session, _ = await Sessions(writer).open("default", "agent", process.pid)
        # As a clock set back by years after the session was opened would show it.
        await writer.write(lambda conn: conn.execute("UPDATE sessions SET opened_at = '2001-01-01T00:00:00.000Z'"))
        assert session.alive
        again = Sessions(writer)
        await again.load()
        assert await again.close(session.id) == session
    finally:
        process.kill()
        process.wait()
        writer.close()
    assert not session.alive


def test_a_later_process_of_the_same_number_is_not_the_sessions() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        born = start_time(process.pid)
        assert born is not None
        for started, alive in ((born, True), (born - 1, False), (None, True)):
            session = Session("0" * 32, "default", "agent", "k", "pi", 1, process.pid, started)
            assert session.alive is alive
    finally:
        process.kill()
        process.wait()
