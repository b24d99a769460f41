"""B35: a pruned store gives its room back to the disk, also while the daemon writes."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from reef.ids import is_id
from reef.records.writer import Writer
from tests.http.running import Home, chat
from tests.unit.records.calling import recorded

MB = 1000 * 1000


def fill(home: Home, megabytes: int) -> None:
    """So many calls, each with an image of one megabyte in its reply, which cannot be compressed."""
    home.paths.make()
    writer = Writer(home.paths.database)
    for _ in range(megabytes):
        image = base64.b64encode(os.urandom(MB))
        recorded(writer, b'{"messages":[]}', b'{"data":[{"b64_json":"%s"}]}' % image)
    writer.close()


def pruned(home: Home, keep: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "reef.cli.app", "records", "prune", "--keep-bytes", keep, "--yes"],
        env=home.env, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def size(home: Home) -> int:
    database = home.paths.database
    return sum(place.stat().st_size for place in database.parent.glob(f"{database.name}*"))


@pytest.mark.parametrize(
    "megabytes", [40, pytest.param(200, marks=pytest.mark.slow)], ids=["40 MB", "200 MB as reported"]
)
def test_a_store_shrinks_when_nine_tenths_are_pruned_while_calls_come_in(
    new_home: Callable[..., Home], megabytes: int
) -> None:
    home = new_home()
    fill(home, megabytes)
    home.start()
    before = size(home)
    assert before > megabytes * MB
    receipts: list[str] = []
    over = threading.Event()
    client = home.nobody

    def call() -> None:
        while not over.is_set():
            reply = chat(client, "still here")
            receipts.append(reply.headers.get("x-reef-agent-record-id", reply.headers.get("x-reef-unrecorded", "")))

    calling = threading.Thread(target=call)
    calling.start()
    done = pruned(home, f"{megabytes // 10}MB")
    over.set()
    calling.join()
    assert done.returncode == 0, done.stderr
    told = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert re.search(rf"before   {_near(megabytes)} MB, of it", told["before"])
    assert size(home) < megabytes * MB // 5
    status: dict[str, Any] = home.nobody.get("/reef/status").json()["records"]
    assert (status["lost"], status["pruned"]["records"] >= megabytes * 9 // 10) == (0, True)
    assert all(map(is_id, receipts)), [found for found in receipts if not is_id(found)]
    # Whoever called meanwhile has a receipt with its bodies, and the old receipts resolve as well.
    assert len(receipts) > 3
    newest = home.person.get(f"/reef/records/{receipts[-1]}").json()
    assert newest["pruned_at"] is None and "still here" in newest["request_text"]
    (first,) = home.person.get("/reef/records", params={"limit": 1, "before": 2}).json()["records"]
    oldest = home.person.get(f"/reef/records/{first['agent_record_id']}").json()
    assert (oldest["state"], oldest["response_text"]) == ("complete", None) and oldest["response_bytes"] > MB
    home.stop()
    # The counters are still there after a restart.
    home.start()
    assert home.nobody.get("/reef/status").json()["records"]["pruned"] == status["pruned"]


def _near(megabytes: int) -> str:
    return "(" + "|".join(str(megabytes + more) for more in range(megabytes // 8 + 2)) + ")"


def test_the_command_says_before_and_after_as_json(new_home: Callable[..., Home]) -> None:
    home = new_home()
    fill(home, 3)
    home.start()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.cli.app", "records", "prune", "--keep-bytes", "1.5MB", "--yes", "--json"],
        env=home.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["records"] == 2 and told["bodies_after"] <= 1.5 * MB and told["store_after"] < told["store_before"]
