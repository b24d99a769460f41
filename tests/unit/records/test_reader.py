"""Reading: pages, filters, sessions, and reading while the daemon is down or writes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from reef.errors import Failed, NotFound
from reef.ids import new_id
from reef.records import rows
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.schema import StoreRefused
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

RECORD = {
    "sequence", "agent_record_id", "scenario", "session", "dialect", "model", "streaming", "state", "source", "adapter",
    "version", "engine", "load_id", "status", "error", "started_at", "first_byte_ms", "duration_ms", "prompt_tokens",
    "completion_tokens", "cached_tokens", "finish_reason", "request_bytes", "response_bytes", "preview",
    "answer_preview", "score", "agent_score", "side_call", "redactions",
}  # fmt: skip
SESSION = {
    "id", "key", "scenario", "adapter", "version", "cwd", "title", "opened_at", "closed_at", "calls", "last_receipt",
    "last_preview", "last_at", "score",
}  # fmt: skip


def test_a_record_has_every_key_that_the_routes_promise(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    assert reader.records()[0].keys() >= RECORD
    assert reader.record(receipt).keys() >= RECORD
    with pytest.raises(NotFound, match="f" * 32):
        reader.record("f" * 32)


def test_records_come_newest_first_in_pages_next_to_an_edge(writer: Writer, reader: Reader) -> None:
    for _ in range(10):
        recorded(writer)

    def page(**edge: int) -> list[int]:
        return [row["sequence"] for row in reader.records(**edge)]

    assert page(limit=3) == [10, 9, 8]
    assert page(before=8, limit=3) == [7, 6, 5]
    assert page(after=3, limit=3) == [6, 5, 4]
    assert page(after=3, before=9, limit=2) == [8, 7]
    assert page(after=10) == []
    assert page(before=1) == []


def test_records_are_filtered_by_scenario_session_and_text(writer: Writer, reader: Reader) -> None:
    session = writer.submit(lambda conn: rows.open_session(conn, "default", key="k1")).result(30)
    first = recorded(writer, session="k1", preview="fix the 100% bug_now")
    second = recorded(writer, session="k2", preview="write a page", model="qwen")
    third = recorded(writer, scenario="other", preview="fix it")

    def found(**filters: str) -> list[str]:
        assert reader.count_records(**filters) == len(reader.records(**filters))
        return [row["agent_record_id"] for row in reader.records(**filters)]

    assert found(scenario="other") == [third]
    assert found(session="k1") == found(session=session) == [first]
    assert found(text="FIX") == [third, first]
    assert found(text="fix", scenario="default") == [first]
    assert found(text="100%") == found(text="bug_n") == [first]
    assert found(text="0_b") == []
    assert found(text="qwen") == [second]
    assert found(scenario="nobody") == []


def test_receipts_are_found_by_their_beginning(writer: Writer, reader: Reader) -> None:
    for receipt in ("aa" + "0" * 30, "aabb" + "0" * 28, "aabbc" + "f" * 27, "ff" + "f" * 30):
        opened(writer, receipt=receipt)
    assert reader.receipts("aabb") == ["aabb" + "0" * 28, "aabbc" + "f" * 27]
    assert reader.receipts("AABBC") == ["aabbc" + "f" * 27]
    assert reader.receipts("aa", 2) == ["aa" + "0" * 30, "aabb" + "0" * 28]
    assert reader.receipts("f" * 32) == ["f" * 32]
    for nothing in ("", "0", "xyz", "a" * 33, "a%"):
        assert reader.receipts(nothing) == []


def test_a_session_shows_its_calls_its_last_request_and_the_persons_score(writer: Writer, reader: Reader) -> None:
    def session(cwd: str) -> str:
        return writer.submit(lambda conn: rows.open_session(conn, "default", adapter="pi", cwd=cwd)).result(30)

    older, newer = session("/a"), session("/b")
    recorded(writer, session=older, preview="one")
    rated = recorded(writer, session=older, preview="two")
    recorded(writer, session=older, preview="make a title", side_call=True)
    for source, score in (("person", 1), ("agent", -1)):
        body = {"score": score, "references": [rated]}
        writer.submit(lambda conn, body=body, source=source: store_report(conn, "default", body, source)).result(30)  # type: ignore[misc]
    writer.submit(lambda conn: rows.open_session(conn, "default", kind="step")).result(30)
    found = reader.sessions()
    assert [row["id"] for row in found] == [newer, older]
    assert found[0].keys() >= SESSION
    assert (found[0]["calls"], found[0]["last_receipt"], found[0]["score"]) == (0, None, None)
    shown = reader.sessions(cwd="/a")[0]
    assert (shown["calls"], shown["last_receipt"], shown["last_preview"], shown["score"]) == (3, rated, "two", 1)
    assert [row["id"] for row in reader.sessions(limit=1)] == [newer]
    assert reader.sessions(scenario="other") == []
    with pytest.raises(NotFound):
        reader.session(new_id())


def test_a_damaged_body_is_named_and_never_shown(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer, b"the right bytes")
    writer.submit(lambda conn: conn.execute("UPDATE parts SET body = CAST('the wrong bytes' AS BLOB)")).result(30)
    with pytest.raises(Failed, match=receipt):
        reader.request_bytes(receipt)


def test_the_store_is_read_while_no_daemon_runs_and_no_side_file_is_there(store: Path) -> None:
    writer = Writer(store)
    receipt = recorded(writer, b"kept")
    writer.close()
    assert [file.name for file in store.parent.glob("reef.db-*")] == []
    assert Reader(store).request_bytes(receipt) == b"kept"


def test_a_folder_that_cannot_be_written_is_read_all_the_same() -> None:
    code = (
        "import os, sys; from pathlib import Path; from reef.records.reader import Reader\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "sys.stdout.buffer.write(Reader(Path(sys.argv[1])).request_bytes(sys.argv[2]))"
    )
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "reef.db"
        writer = Writer(store)
        receipt = recorded(writer, b"kept")
        writer.close()
        # Not the owner, or an owner who may not write: either way SQLite cannot make its side files.
        store.chmod(0o644)
        store.parent.chmod(0o555)
        shown = subprocess.run(
            [sys.executable, "-c", code, str(store), receipt], capture_output=True, timeout=60, check=False
        )
        store.parent.chmod(0o755)
    assert (shown.stdout, shown.stderr) == (b"kept", b"")


def test_after_a_crash_the_store_is_read_with_what_was_only_in_the_log(store: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from reef.records.writer import Writer; from tests.unit.records.calling import recorded\n"
        "print(recorded(Writer(Path(sys.argv[1])), b'only in the log'), flush=True); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([sys.executable, "-c", code, str(store)], capture_output=True, text=True, timeout=60)
    assert died.returncode == -9
    assert store.with_name("reef.db-wal").stat().st_size > 0
    assert Reader(store).request_bytes(died.stdout.strip()) == b"only in the log"


def test_a_reader_never_writes(writer: Writer, reader: Reader) -> None:
    recorded(writer)
    reader.records()
    with pytest.raises(StoreRefused, match="readonly"):
        reader._all("DELETE FROM records")


def test_a_reader_sees_new_rows_and_holds_nothing_that_keeps_the_log_from_being_emptied(
    writer: Writer, reader: Reader
) -> None:
    recorded(writer)
    assert len(reader.records()) == 1
    recorded(writer)
    assert len(reader.records()) == 2
    emptied = writer.submit(lambda conn: 0).result(30)
    assert emptied == 0
    busy, _, _ = writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0


def test_a_reader_may_be_asked_from_many_threads(writer: Writer, reader: Reader) -> None:
    receipts = [recorded(writer, f"{n}".encode() * 100) for n in range(20)]
    wrong: list[object] = []

    def ask(n: int) -> None:
        for _ in range(20):
            if reader.request_bytes(receipts[n]) != f"{n}".encode() * 100:
                wrong.append(n)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_closed_reader_opens_again_at_the_next_question(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer)
    settled(writer, receipt)
    reader.close()
    assert reader.record(receipt)["state"] == "complete"
    reader.close()
    reader.close()
