"""A disk that takes nothing more costs records, never answers."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.http.running import Home, chat


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


def test_calls_are_answered_on_a_full_disk_and_each_counts_once_as_not_recorded(home: Home) -> None:
    new = {"x-reef-scenario": "first-seen-on-a-full-disk"}
    with full_disk(home):
        streaming = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        replies = [chat(home.nobody, "hello"), chat(home.nobody, "hello", **new)]
        replies += [home.nobody.post("/v1/chat/completions", json=streaming, headers=names) for names in ({}, new)]
        for reply in replies:
            assert reply.status_code == 200 and "You said" in reply.text
            assert "x-reef-unrecorded" in reply.headers
            assert not {"x-reef-agent-record-id", "x-reef-scenario-created"} & set(reply.headers)
        status = home.nobody.get("/reef/status").json()
        assert status["records"]["lost"] == len(replies) and status["records"]["failure"]
        assert new["x-reef-scenario"] not in [row["name"] for row in status["scenarios"]]
    # Both come back by themselves.
    assert "x-reef-agent-record-id" in chat(home.nobody, "hello").headers
    assert chat(home.nobody, "hello", **new).headers["x-reef-scenario-created"] == "1"
