"""A daemon that is killed in the middle of a stream loses next to nothing and says what is missing."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.home import Home, until

pytestmark = [pytest.mark.network, pytest.mark.timeout(200)]

BODY = {
    "model": "fake-model",
    "stream": True,
    "messages": [{"role": "user", "content": "count [[paced 200 50ms]]"}],
}


def children_of(pid: int) -> set[int]:
    """Every living descendant of a process."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(stat.parent.name)
            found |= {child} | children_of(child)
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_daemon_leaves_an_interrupted_record_that_resolves(home: Home) -> None:
    url, _ = home.fake_upstream()
    home.ok(f"reef up --inference.upstream-url {url} --inference.upstream-model fake-model")
    status = home.json("reef status")
    curl = (
        f"curl -sN -i -H 'content-type: application/json' -d '{json.dumps(BODY)}' {status['url']}/v1/chat/completions"
    )
    _, output = home.start(curl)
    until(lambda: True if output.read_text().count("word") >= 60 else None, "half a stream", output.read_text)
    family = children_of(status["pid"])
    seen_before_the_kill = output.read_text()
    os.kill(status["pid"], signal.SIGKILL)
    time.sleep(2)
    assert [pid for pid in family if is_running(pid)] == []
    home.ok("reef up")
    (record,) = home.json("reef records list")
    assert record["state"] == "interrupted"
    receipt = next(
        line.split(": ")[1].strip() for line in seen_before_the_kill.splitlines() if "agent-record-id" in line.lower()
    )
    assert record["agent_record_id"] == receipt
    kept = home.ok(f"reef records show {receipt} --response")
    seen = seen_before_the_kill.count("word")
    # 50 ms a word: 30 words are the second and a half that may be missing.
    assert seen - 30 <= kept.count("word") <= seen + 10
    check = (
        f"import sqlite3; print(sqlite3.connect('{home.data}/reef.db').execute('PRAGMA integrity_check').fetchone()[0])"
    )
    assert home.ok(f'python3 -c "{check}"').strip() == "ok"
    home.ok("reef good --receipt " + receipt)
