"""What a person types is found, whatever it is, and nothing that can be typed is an error."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef.records import finding, search
from reef.records.filters import Filter
from reef.records.finding import find, terms
from reef.records.schema import open_store
from reef.records.writer import Writer
from tests.unit.records.calling import recorded
from tests.unit.records.test_search import asking, index, said, saying

CALL = {"id": "t", "type": "function", "function": {"name": "grep", "arguments": json.dumps({"pattern": "flaky"})}}


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("store") / "reef.db"
    writer = Writer(path)
    recorded(
        writer, asking("Why does parse_config fail?"), saying("Because the parser reads config twice."), session="a"
    )
    recorded(writer, asking("the config of the parser"), saying("Größe und Maß: C'est déjà vu"), model="other")
    call = json.dumps({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]}).encode()
    recorded(writer, asking("find the flaky test"), call)
    recorded(
        writer,
        asking("find the flaky test", said("I found it") | {"tool_calls": [CALL]}, "東京タワーへ"),
        saying("はい"),
    )
    recorded(writer, b"no json, but\nsome lines of text " * 40 + b"needle here", saying("fine"))
    writer.close()
    made = open_store(path)
    index(made)
    yield made
    made.close()


def found(conn: sqlite3.Connection, typed: str, **wanted: object) -> list[int]:
    return [row["sequence"] for row in find(conn, typed, Filter(**wanted))["records"]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("parser config", [2, 1]),
        ("PARSER", [2, 1]),
        ("pars*", [2, 1]),
        ("pars", []),
        ("parse_config", [1]),
        ("parse_conf*", [1]),
        ('"the parser"', [2, 1]),
        ('"config of the parser"', [2]),
        ('"config parser"', []),
        ('"the pars"*', [2, 1]),
        ("request:parser", [2]),
        ("reply:parser", [1]),
        ('reply:"the parser" twice', [1]),
        ("tool:grep", [3]),
        ("tools:flaky", [3]),
        ("tool:flaky find", [3]),
        ("reply:flaky", []),
        ("grosse", []),
        ("größe MASS", []),
        ("GRÖSSE", []),
        ("Größe deja", [2]),
        ("c'est", [2]),
        ("タワー", [4]),
        ("京都", []),
        ("needle", [5]),
        ('"unclosed needle', []),
        ('"needle here', [5]),
        ("needle AND (here OR", []),
        ("nothing like it", []),
        ("", []),
        ("*** ((( :", []),
    ],
)
def test_what_is_typed_is_found(conn: sqlite3.Connection, typed: str, expected: list[int]) -> None:
    assert found(conn, typed) == expected


def test_a_search_goes_through_the_same_filters_as_a_list(conn: sqlite3.Connection) -> None:
    assert found(conn, "parser", model="OTHER") == [2]
    assert found(conn, "parser", session="a") == [1]
    assert found(conn, "parser", session="a", since="2020-01-01") == [1]
    assert found(conn, "parser", failed=True) == []
    assert found(conn, '"the parser"', session="a") == [1]


def test_the_snippet_is_one_line_around_what_was_found(conn: sqlite3.Connection) -> None:
    row = find(conn, "needle")["records"][0]
    assert row["snippet"].endswith("some lines of text needle here") and row["snippet"].startswith("…")
    assert "\n" not in row["snippet"] and len(row["snippet"]) < 140
    assert row["found_in"] == "request"
    called = find(conn, "tool:flaky")["records"][0]
    assert (called["snippet"], called["found_in"]) == ("grep flaky", "tools")


def test_pages_follow_each_other(conn: sqlite3.Connection) -> None:
    first = find(conn, "the", limit=2)["records"]
    second = find(conn, "the", limit=2, before=first[-1]["sequence"])["records"]
    assert [[row["sequence"] for row in page] for page in (first, second)] == [[3, 2], [1]]
    assert [row["sequence"] for row in find(conn, '"the parser"', limit=1, before=2)["records"]] == [1]


def test_a_long_search_for_a_phrase_says_how_far_it_looked(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "LOOKED_AT", 1)
    assert find(conn, '"parser config"') == {"records": [], "pending": 0, "cut": 0, "looked_back_to": 2}
    assert find(conn, "reads")["looked_back_to"] is None


def test_a_search_says_how_many_records_are_not_in_the_index(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reef.db")
    recorded(writer, asking("late"), saying("later"))
    writer.close()
    conn = open_store(tmp_path / "reef.db")
    assert find(conn, "late") == {"records": [], "pending": 1, "cut": 0, "looked_back_to": None}
    conn.close()


SIGNS = (
    '"', "*", "(", ")", ":", "-", "^", "AND", "OR", "NOT", "NEAR", "tool:", "a_b", "{x}", "+", "\\", "\0", "é", "東",
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(typed=st.text(max_size=60) | st.lists(st.sampled_from(SIGNS)).map(" ".join))
def test_nothing_that_can_be_typed_is_an_error(conn: sqlite3.Connection, typed: str) -> None:
    answer = find(conn, typed)
    assert set(answer) == {"records", "pending", "cut", "looked_back_to"}
    for term in terms(typed):
        assert term.words and all(term.words)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_every_text_is_found_by_its_own_words(text: str) -> None:
    conn = sqlite3.connect(":memory:")
    conn.execute("CREATE VIRTUAL TABLE t USING fts5(x, detail=column, tokenize='unicode61 remove_diacritics 2')")
    conn.execute("INSERT INTO t (x) VALUES (?)", (" ".join(search.words(text)),))
    for word in finding.index_words(text.replace("\0", " ")):
        assert conn.execute("SELECT 1 FROM t WHERE t MATCH ?", (finding.Term((word,)).match,)).fetchone(), word
    conn.close()
