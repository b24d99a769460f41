"""B38: a store that cannot be written costs records, never answers, and recording resumes by itself."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.http.running import ROOT, Home, Upstream, chat

STREAM = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


@contextmanager
def full_disk(home: Home) -> Iterator[None]:
    """While this lasts no file of the daemon can grow."""
    assert home.process is not None
    before = resource.prlimit(home.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(home.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(home.process.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """While this lasts another program holds the store's only write lock."""
    with closing(sqlite3.connect(home.paths.database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("trouble", [full_disk, locked])
def test_calls_are_answered_and_each_counts_once_as_not_recorded(
    new_home: Callable[..., Home], trouble: Callable[[Home], AbstractContextManager[None]]
) -> None:
    home = new_home().start()
    new = {"x-reef-scenario": "first-seen-in-trouble"}
    with trouble(home):
        replies = [chat(home.nobody, "hello"), chat(home.nobody, "hello", **new)]
        replies += [home.nobody.post("/v1/chat/completions", json=STREAM, headers=names) for names in ({}, new)]
        for reply in replies:
            assert reply.status_code == 200 and "You said" in reply.text
            assert "x-reef-unrecorded" in reply.headers
            assert not {"x-reef-agent-record-id", "x-reef-scenario-created"} & set(reply.headers)
        status = home.nobody.get("/reef/status").json()
        assert new["x-reef-scenario"] not in [row["name"] for row in status["scenarios"]]
    # Both come back by themselves.
    assert "x-reef-agent-record-id" in chat(home.nobody, "hello").headers
    assert chat(home.nobody, "hello", **new).headers["x-reef-scenario-created"] == "1"
    records = home.nobody.get("/reef/status").json()["records"]
    assert (records["lost"], records["failure"]) == (len(replies), None)
    for command in ("status", "doctor"):
        told = said(home, command)
        assert f"{len(replies)} calls" in told and "recorded" in told, told


def said(home: Home, command: str) -> str:
    """What a command prints."""
    argv = [sys.executable, "-P", "-m", "reef.cli.app", command]
    done = subprocess.run(argv, env=home.env, capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())


def test_a_disk_of_64_mib_that_fills_up_costs_records_and_no_answer(
    upstream: Upstream, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    """A real file system without room, which the daemon has to itself."""
    disk = tmp_path / "disk"
    disk.mkdir()
    room = [need_tool("bwrap"), "--dev-bind", "/", "/", "--size", str(64 * 1024 * 1024), "--tmpfs", str(disk)]
    story = [sys.executable, "-m", "tests.faults.small_disk", str(disk), upstream.url]
    done = subprocess.run([*room, *story], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    recorded, unrecorded = (int(word) for word in done.stdout.split() if word.isdigit())
    assert recorded >= 5 and unrecorded >= 8
    assert not list(disk.iterdir()), "the disk was a room of its own"
