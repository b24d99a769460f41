"""B47: a lock that a killed git left is removed and told; one that a living process holds is waited for, then named."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.http.running import Home


@contextmanager
def held(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock open, as a git at work has."""
    holder = subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(lock)!r}, 'w'); print('held', flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        yield holder
    finally:
        if holder.poll() is None:
            holder.communicate("\n")


def create(home: Home, name: str) -> tuple[int, str]:
    """Make a scenario, which publishes its base: status and message."""
    reply = home.nobody.post("/reef/scenarios", json={"name": name}, timeout=60)
    return reply.status_code, reply.json().get("error", {}).get("message", "")


@pytest.mark.parametrize("when", ["while the daemon runs", "before it starts"])
def test_a_lock_that_nobody_holds_is_removed_and_said_and_publishing_goes_on(
    new_home: Callable[..., Home], when: str
) -> None:
    home = new_home().start()
    if when == "before it starts":
        home.stop()
    for name in ("index.lock", "refs/heads/other.lock"):
        (home.paths.versions_git / name).write_bytes(b"")
    if when == "before it starts":
        home.start()
    assert create(home, "other") == (201, "")
    log = home.paths.daemon_log.read_text()
    for name in ("index.lock", "other.lock"):
        assert f"removed the orphaned git lock {name}, which no process holds" in log
    assert not list(home.paths.versions_git.rglob("*.lock"))


def test_a_lock_that_a_living_process_holds_is_waited_for_and_then_refused_by_name(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    lock = home.paths.versions_git / "packed-refs.lock"
    with held(lock) as holder:
        status, message = create(home, "other")
        assert (status, f"held by process {holder.pid}" in message) == (503, True)
        # Calls are served meanwhile, and a wait that ends in time ends well.
        assert home.nobody.get("/healthz").status_code == 200
        threading.Timer(1.0, holder.communicate, ["\n"]).start()
        assert create(home, "other")[0] == 201
    (base,) = home.nobody.get("/reef/scenarios/other/releases").json()["releases"]
    assert (base["version"], base["state"]) == (1, "published")
