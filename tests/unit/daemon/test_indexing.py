"""The pass that fills the search index: soon when nothing else is to do, at most a tenth of a core beside calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reef.daemon import indexing
from reef.daemon.indexing import Indexing
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled
from tests.unit.records.test_search import asking, saying


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "reef.db")
    yield made
    made.close()


def pending_ends(reader: Reader, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while reader.search_state()["pending"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def found(reader: Reader, typed: str) -> list[int]:
    return [row["sequence"] for row in reader.search(typed)["records"]]


def test_what_was_there_and_what_comes_is_found_within_five_seconds(writer: Writer) -> None:
    reader = Reader(writer.path)
    recorded(writer, asking("early apples"), saying("yes"))
    running = opened(writer, asking("slow plums"))
    working = Indexing(writer, writer.path)
    working.start()
    pending_ends(reader, 5)
    assert (found(reader, "apples"), found(reader, "plums")) == ([1], [])
    settled(writer, running, response=saying("quinces"))
    pending_ends(reader, 5)
    assert (found(reader, "plums"), found(reader, "quinces")) == ([2], [2])
    working.stop()
    reader.close()


def test_a_damaged_record_does_not_stop_the_others(writer: Writer) -> None:
    reader = Reader(writer.path)
    recorded(writer, asking("apples"), saying("one"))
    recorded(writer, asking("plums"), saying("two"))
    writer.submit(lambda conn: conn.execute("UPDATE parts SET codec = 'odd' WHERE sequence = 1")).result()
    working = Indexing(writer, writer.path)
    working.start()
    pending_ends(reader)
    working.stop()
    assert reader.search("plums")["records"][0]["sequence"] == 2
    assert reader.search_state() == {"pending": 0, "cut": 1}
    reader.close()


def test_it_waits_for_a_gap_between_calls_but_not_for_ever(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "SETTLE_S", 0.0)
    monkeypatch.setattr(indexing, "GIVE_WAY_S", 1.0)
    working = Indexing(writer, writer.path)
    reader = Reader(writer.path)
    recorded(writer, asking("apples"), saying("yes"))
    working.start()
    begun = time.monotonic()
    while not found(reader, "apples"):
        recorded(writer, asking("now"), saying("yes"))
        assert time.monotonic() - begun < 30
    assert time.monotonic() - begun >= 1.0
    working.stop()
    reader.close()


def test_beside_calls_it_takes_at_most_a_tenth_of_a_core(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "SETTLE_S", 0.0)
    monkeypatch.setattr(indexing, "GIVE_WAY_S", 0.0)
    for number in range(60):
        recorded(writer, asking(*(f"text {n} of {number} " * 40 for n in range(20))), saying("yes"))
    working = Indexing(writer, writer.path)
    took: list[tuple[float, float]] = []
    used: list[float] = []
    slice, wait = working._slice, working._stop.wait
    monkeypatch.setattr(working, "_slice", lambda conn, due: used.append(slice(conn, due)) or used[-1])
    monkeypatch.setattr(
        working._stop, "wait", lambda seconds: took.append((used[-1] if used else 0.0, seconds)) or wait(0)
    )
    calling = threading.Event()
    reader = Reader(writer.path)
    working.start()
    while reader.search_state()["pending"]:
        recorded(writer, asking("now"), saying("yes"))
    calling.set()
    working.stop()
    reader.close()
    rests = [(cpu, seconds) for cpu, seconds in took if cpu and seconds]
    assert len(used) > 3
    # A slice that no call came beside, as the last ones may be, is followed by a rest as long as itself.
    assert all(seconds >= 0.99 * cpu for cpu, seconds in rests)
    assert sum(seconds >= 8.9 * cpu for cpu, seconds in rests) >= len(rests) / 2


def test_it_ends_at_once_when_the_daemon_does(writer: Writer) -> None:
    for number in range(50):
        recorded(writer, asking(f"text of {number}"), saying("yes"))
    working = Indexing(writer, writer.path)
    working.start()
    begun = time.monotonic()
    working.stop()
    assert time.monotonic() - begun < 1


def test_a_fault_of_the_pass_is_told_and_the_next_commit_tries_again(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexing, "SETTLE_S", 0.0)
    monkeypatch.setattr(indexing, "_RETRY_S", 0.0)
    failing = iter([ZeroDivisionError("odd")])
    slice = Indexing._slice

    def fail_once(self: Indexing, conn: Any, due: Any) -> float:
        for error in failing:
            raise error
        return slice(self, conn, due)

    monkeypatch.setattr(Indexing, "_slice", fail_once)
    reader = Reader(writer.path)
    working = Indexing(writer, writer.path)
    working.start()
    recorded(writer, asking("apples"), saying("yes"))
    deadline = time.monotonic() + 30
    while "the search index failed" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    recorded(writer, asking("plums"), saying("yes"))
    pending_ends(reader)
    working.stop()
    assert (found(reader, "apples"), found(reader, "plums")) == ([1], [2])
    reader.close()
