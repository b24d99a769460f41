"""What narrows a list of records: each filter alone and together, made in one place, and found by an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from reef.errors import InvalidInput
from reef.records.filters import Filter
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

DAY = "01T00:00:00.000Z"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    writer = Writer(tmp_path_factory.mktemp("store") / "reef.db")
    receipts = [
        recorded(writer, scenario="a", session="s1", model="Big-1", preview="50% of it", started_at=f"2026-01-{DAY}"),
        recorded(writer, scenario="a", session="s2", model="big-2", started_at=f"2026-03-{DAY}"),
        recorded(writer, scenario="b", session="s1", model="small", started_at=f"2026-02-{DAY}"),
    ]  # fmt: skip
    settled(writer, opened(writer, scenario="b", model="big-1"), "failed", error="refused")
    settled(writer, opened(writer, scenario="b"), prompt_cut=True)

    def rate(receipt: str, score: float, source: Any = "person") -> None:
        body = {"references": [receipt], "score": score}
        writer.submit(lambda conn: store_report(conn, "a", body, source)).result(30)

    rate(receipts[0], 1)
    rate(receipts[0], -1)
    rate(receipts[1], 0.5)
    rate(receipts[1], -1, "program")
    writer.close()
    made = Reader(writer.path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [5, 4, 3, 2, 1]),
        ({"scenario": "a"}, [2, 1]),
        ({"session": "s1"}, [3, 1]),
        ({"session": "s1", "scenario": "b"}, [3]),
        ({"model": "BIG-1"}, [4, 1]),
        ({"model": "big*"}, [4, 2, 1]),
        ({"model": "b%g*"}, []),
        ({"score": "<0"}, [1]),
        ({"score": "-1"}, [1]),
        ({"score": "1"}, []),
        ({"score": ">= 0.5"}, [2]),
        ({"score": "!=0.5"}, [1]),
        ({"since": "2026-02-01T00:00:00Z"}, [5, 4, 3, 2]),
        ({"since": "2026-02-01T02:00:00+01:00"}, [5, 4, 2]),
        ({"since": "2999-01-01"}, []),
        ({"failed": True}, [4]),
        ({"cut": True}, [5]),
        ({"failed": True, "cut": True}, []),
        ({"text": "50%"}, [1]),
        ({"text": "0%of"}, []),
        ({"text": "refused", "failed": True}, [4]),
    ],
)
def test_a_list_and_its_count_are_narrowed_alike(reader: Reader, wanted: dict[str, Any], expected: list[int]) -> None:
    assert [row["sequence"] for row in reader.records(**wanted)] == expected
    assert reader.count_records(**wanted) == len(expected)
    assert [row["sequence"] for row in reader.records(limit=1, **wanted)] == expected[:1]
    assert [row["sequence"] for row in reader.records(after=0, limit=1, **wanted)] == expected[-1:]


@pytest.mark.parametrize("wanted", [{"score": "good"}, {"score": "<"}, {"since": "yesterday"}, {"since": "9999999"}])
def test_a_filter_that_is_put_wrongly_is_named(reader: Reader, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="is not a") as caught:
        reader.records(**wanted)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Filter(session="s1"), "records_by_session"),
        (Filter(model="m"), "records_by_model"),
        (Filter(score="<0"), "reports_by_score"),
        (Filter(since="2026-01-01"), "records_by_time"),
        (Filter(failed=True), "records_that_failed"),
        (Filter(cut=True), "records_that_were_cut"),
    ],
)
def test_every_filter_is_found_by_an_index(reader: Reader, wanted: Filter, index: str) -> None:
    def plan(conn: sqlite3.Connection) -> str:
        where, values = wanted.conditions(conn)
        query = f"SELECT sequence FROM records WHERE {' AND '.join(where)} ORDER BY sequence DESC LIMIT 20"
        return str(conn.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall())

    assert index in reader.query(plan)
