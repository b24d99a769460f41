"""Inside a room whose `FOLDER` is a disk of 64 MiB: `python -m tests.faults.small_disk FOLDER UPSTREAM`.

Calls until nothing more fits, makes room, and calls on. Fails loudly where an answer does not come or recording does
not resume.
"""

from __future__ import annotations

import base64
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx

from tests.http.running import Home, chat, wait_for

BALLAST_BYTES = 40 * 1024 * 1024
UNRECORDED = 8
"""Calls that must find the disk full, and be answered."""


def main(folder: Path, upstream: str) -> None:
    """The whole story."""
    assert shutil.disk_usage(folder).total == 64 * 1024 * 1024
    home = Home(folder, upstream)
    ballast = folder / "ballast"
    try:
        home.start()
        ballast.write_bytes(bytes(BALLAST_BYTES))
        kept, unrecorded = fill(home)
        status = home.person.get("/reef/status").json()["records"]
        assert status["lost"] >= unrecorded, status
        ballast.unlink()
        # By itself: nobody starts anything anew.
        resumed = wait_for(lambda: chat(home.nobody, "there is room again").headers.get("x-reef-agent-record-id"))
        status = home.person.get("/reef/status").json()["records"]
        assert status["failure"] is None and status["lost"] >= unrecorded, status
        for receipt, sent in [*kept.items(), (resumed, b"there is room again")]:
            request = home.person.get(f"/reef/records/{receipt}/request")
            assert request.status_code == 200 and sent in request.content, receipt
    finally:
        if home.process is not None:
            home.stop()
        home.close()
    with closing(sqlite3.connect(home.paths.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        told = "SELECT sum(json_extract(ids_json, '$.lost')) FROM events WHERE kind = 'recording_lost'"
        assert connection.execute(told).fetchone()[0] >= unrecorded
    print(f"{len(kept)} recorded, {unrecorded} answered without a record")


def fill(home: Home) -> tuple[dict[str, bytes], int]:
    """Call with bodies that do not compress until several were not recorded; what was, and how many were not."""
    kept: dict[str, bytes] = {}
    unrecorded = 0
    deadline = time.monotonic() + 60
    while unrecorded < UNRECORDED:
        assert time.monotonic() < deadline, (len(kept), unrecorded)
        text = base64.b64encode(os.urandom(180_000)).decode()
        reply: httpx.Response = chat(home.nobody, text)
        assert reply.status_code == 200 and "You said" in reply.text
        receipt = reply.headers.get("x-reef-agent-record-id")
        if receipt is None:
            assert "x-reef-unrecorded" in reply.headers
            unrecorded += 1
        else:
            kept[receipt] = text[:100].encode()
    return kept, unrecorded


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
