"""However many clients hang up, and whenever: nothing of their calls stays open, and the daemon does not grow."""

from __future__ import annotations

import asyncio
import collections
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reef.gateway.wire import KEPT_ALIVE_S
from tests.faults.leaving import Client, connections, plan, rss_mb, unended
from tests.http.running import Home, Upstream, start_upstream, wait_for

CALLS = 10_000
FIRST = 1_000
AT_ONCE = 64
GROWTH_MB = 10
_KEPT_S = 2 * KEPT_ALIVE_S + 10
"""The client library looks for idle connections once in that time, so one that has just become idle stays for two."""


@pytest.fixture
def upstreams(tmp_path: Path) -> Iterator[list[Upstream]]:
    """A model server that speaks every dialect, and one that speaks chat alone."""
    found = []
    for name, flags in (("native", ()), ("chat", ("--dialects", "chat"))):
        (tmp_path / name).mkdir()
        found.append(start_upstream(tmp_path / name, *flags))
    yield found
    for one in found:
        one.process.terminate()
        one.process.wait()


async def _make(port: int, numbers: Iterator[int], statuses: collections.Counter[int | None]) -> None:
    client = Client(port)
    for number in numbers:
        statuses[await client.call(plan(number))] += 1
    await client.leave()


async def _calls(port: int, first: int, last: int) -> collections.Counter[int | None]:
    """The calls of these numbers, `AT_ONCE` at a time; how many had which status."""
    statuses: collections.Counter[int | None] = collections.Counter()
    numbers = iter(range(first, last))
    await asyncio.gather(*[_make(port, numbers, statuses) for _ in range(AT_ONCE)])
    return statuses


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_connection_no_record_and_no_memory_stays_behind(tmp_path: Path, upstreams: list[Upstream]) -> None:
    home = Home(tmp_path, upstreams[0].url)
    try:
        home.start()
        assert home.process is not None
        pid, port = home.process.pid, int(home.url.rpartition(":")[2])
        made = home.person.post("/reef/scenarios", json={"name": "translated", "engine": {"url": upstreams[1].url}})
        assert made.status_code == 201, made.text
        statuses = asyncio.run(_calls(port, 0, FIRST))
        _assert_nothing_open(home, upstreams)
        _assert_indexed(home)
        before = rss_mb(pid)
        statuses += asyncio.run(_calls(port, FIRST, CALLS))
        _assert_nothing_open(home, upstreams)
        _assert_indexed(home)
        after = rss_mb(pid)
        print(f"RSS {before:.1f} MB after {FIRST} calls, {after:.1f} MB after {CALLS}; {dict(statuses)}")
        status = home.person.get("/reef/status").json()
        assert (status["records"]["lost"], status["records"]["failure"]) == (0, None)
        assert "ERROR" not in home.paths.daemon_log.read_text()
        assert set(statuses) == {200, None} and statuses[200] > CALLS // 4
        assert after - before < GROWTH_MB
        # Connections that are kept for the next call go too, when none comes.
        wait_for(lambda: not _held(home, upstreams), _KEPT_S)
    finally:
        home.close()


def _assert_indexed(home: Home) -> None:
    """Wait until these calls can be searched for: that pass has memory of its own, and belongs to them."""
    wait_for(lambda: home.person.get("/reef/status").json()["search"]["pending"] == 0, 120)


def _assert_nothing_open(home: Home, upstreams: list[Upstream]) -> None:
    """Soon after the last call: no server works for nobody, no record waits, and few connections are kept."""
    wait_for(lambda: not any(unended(one.log) for one in upstreams), 2)
    wait_for(lambda: not _open_records(home.paths.database), 2)
    assert _held(home, upstreams) <= 2 * AT_ONCE


def _open_records(database: Path) -> int:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    found = connection.execute("SELECT count(*) FROM records WHERE state = 'open'").fetchone()[0]
    connection.close()
    return int(found)


def _held(home: Home, upstreams: list[Upstream]) -> int:
    assert home.process is not None
    return sum(connections(home.process.pid, urlsplit(one.url).port or 0) for one in upstreams)
