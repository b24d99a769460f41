"""kill -9 at any moment: the file is whole, and every receipt that was handed out resolves."""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from reef.records.calls import mark_interrupted
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.unit.records.calling import recorded

# Writes calls without end and prints a receipt once its row is on disk, and again, with `=`, once it has settled.
WRITE = """
import asyncio, json, os, sys
from pathlib import Path
from reef.ids import new_id
from reef.records.calls import OpenRecord, Settlement, flush_progress, open_record, settle_record
from reef.records.writer import Writer

writer = Writer(Path(sys.argv[1]))
say = lambda text: os.write(1, text.encode() + b"\\n")

async def one(n):
    talk = []
    while True:
        receipt = new_id()
        talk = talk[-30:] + [{"role": "user", "content": f"{n} {receipt} " * 40}]
        body = json.dumps({"messages": talk}).encode()
        call = OpenRecord(receipt, "default", "chat", "/v1", body, preview=receipt, streaming=True)
        await writer.write(lambda conn: open_record(conn, call))
        say(receipt)
        await writer.write(lambda conn: flush_progress(conn, receipt, b"text so far " * 20))
        end = Settlement("complete", response=b"reply to " + receipt.encode() + b"!" * 3000)
        await writer.write(lambda conn: settle_record(conn, receipt, end))
        say("=" + receipt)

async def main():
    await asyncio.gather(*(one(n) for n in range(8)))

asyncio.run(main())
"""


def test_every_receipt_that_was_handed_out_survives_a_kill(store: Path) -> None:
    seen: set[str] = set()
    settled: set[str] = set()
    chance = random.Random(20)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITE, str(store)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.strip()
        time.sleep(chance.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        said = [first.strip(), *process.stdout.read().split()]
        process.wait(30)
        process.stdout.close()
        whole = [line for line in said if len(line.lstrip("=")) == 32]
        seen |= {line for line in whole if not line.startswith("=")}
        settled |= {line[1:] for line in whole if line.startswith("=")}

        # Between two lives, as a CLI would: read with nobody writing.
        offline = Reader(store)
        assert offline.record(first.strip())["preview"] == first.strip()
        offline.close()
    assert len(seen) > 20

    writer, reader = Writer(store), Reader(store)
    writer.submit(mark_interrupted).result(60)
    for receipt in seen:
        record = reader.record(receipt)
        request = reader.request_bytes(receipt)
        assert request is not None and receipt.encode() in request
        assert record["state"] == "complete" if receipt in settled else record["state"] in ("complete", "interrupted")
        if record["state"] == "complete":
            assert reader.response_bytes(receipt) == b"reply to " + receipt.encode() + b"!" * 3000
        else:
            assert reader.response_bytes(receipt) in (None, b"text so far " * 20)
    recorded(writer)
    writer.close()
    reader.close()
    with sqlite3.connect(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM records WHERE state = 'open'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM progress").fetchone() == (0,)
        dangling = """SELECT count(*) FROM chains AS node WHERE
            (previous IS NOT NULL AND NOT EXISTS (SELECT 1 FROM chains WHERE sequence = node.previous))
            OR (part IS NOT NULL AND NOT EXISTS (SELECT 1 FROM parts WHERE sequence = node.part))
            OR (child IS NOT NULL AND NOT EXISTS (SELECT 1 FROM chains WHERE sequence = node.child))"""
        assert connection.execute(dangling).fetchone() == (0,)
    connection.close()


LIMITED = """
import resource, sys
from pathlib import Path
from reef.records.reader import Reader
from reef.records.writer import RecordingFailed, Writer
from tests.unit.records.calling import recorded

path = Path(sys.argv[1])
writer = Writer(path)
first = recorded(writer, b"before")
size = path.stat().st_size + path.with_name("reef.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
failed = 0
for n in range(40):
    try:
        recorded(writer, bytes(range(256)) * 60 + str(n).encode())
    except RecordingFailed:
        failed += 1
assert failed > 0, "the limit was never met"
assert writer.lost == failed and writer.failure
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = recorded(writer, b"after")
assert writer.failure is None
reader = Reader(path)
assert (reader.request_bytes(first), reader.request_bytes(again)) == (b"before", b"after")
kinds = [event["kind"] for event in reader.events()]
assert kinds.count("recording_lost") >= 1
writer.close()
"""


def test_a_file_that_cannot_grow_loses_calls_and_recording_resumes(store: Path) -> None:
    """The operating system refuses the write, not SQLite: what a full disk or a quota looks like from below."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    outcome = subprocess.run(
        [sys.executable, "-c", LIMITED, str(store)], capture_output=True, text=True, timeout=100, check=False
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    with sqlite3.connect(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_second_program_that_writes_through_a_symlink_damages_nothing(store: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(store.parent)
    code = (
        "import sys; from pathlib import Path; from reef.records.writer import Writer\n"
        "from tests.unit.records.calling import recorded\n"
        "w = Writer(Path(sys.argv[1]))\n"
        "for n in range(60): recorded(w, sys.argv[2].encode() * 300 + str(n).encode())\n"
        "w.close()"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(place), name])
        for place, name in ((store, "direct"), (link / "reef.db", "linked"))
    ]
    assert [process.wait(100) for process in running] == [0, 0]
    assert Reader(store).counts()["records"]["count"] == 120
    with sqlite3.connect(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
