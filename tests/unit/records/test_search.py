"""The search index: what is new in a record is in it once, and what is forgotten leaves no word behind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reef.records import search
from reef.records.reader import Reader
from reef.records.texts import extract
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

Message = dict[str, Any]
SYSTEM: Message = {"role": "system", "content": "be brief and use the wrench"}


@pytest.fixture
def conn(writer: Writer) -> Iterator[sqlite3.Connection]:
    """A connection of the test's own, which the writer does not use meanwhile."""
    made = sqlite3.connect(writer.path, isolation_level=None)
    made.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'search_texts', 'row')")
    yield made
    made.close()


def asking(*messages: Message | str) -> bytes:
    """A request that asks these; a text is a user's message."""
    whole = [{"role": "user", "content": message} if isinstance(message, str) else message for message in messages]
    return json.dumps({"messages": whole}).encode()


def saying(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def index(conn: sqlite3.Connection) -> int:
    """Bring everything into the index; returns how many records were looked at."""
    if not search.ready(conn):
        search.begin_anew(conn)
    looked = 0
    while found := search.next_records(conn, 3):
        search.index(conn, [extract(conn, sequence) for sequence in found])
        looked += len(found)
    return looked


def sequence(conn: sqlite3.Connection, receipt: str) -> int:
    return int(conn.execute("SELECT sequence FROM records WHERE id = ?", (bytes.fromhex(receipt),)).fetchone()[0])


def left(conn: sqlite3.Connection) -> list[str]:
    """The words in the index."""
    return [row[0] for row in conn.execute("SELECT term FROM words ORDER BY term")]


def holds(conn: sqlite3.Connection, word: str) -> list[int]:
    """The records that are found by a word."""
    return [row[0] for row in conn.execute("SELECT rowid FROM search_texts WHERE search_texts MATCH ?", (word,))]


def talk(writer: Writer, session: str, *turns: tuple[str, str]) -> list[str]:
    """A session whose every call repeats what was said before."""
    messages: list[Message] = [SYSTEM]
    receipts = []
    for question, answer in turns:
        messages.append({"role": "user", "content": question})
        receipts.append(recorded(writer, asking(*messages), saying(answer), session=session))
        messages.append(said(answer))
    return receipts


def test_every_word_of_a_session_is_found_in_the_call_that_brought_it(writer: Writer, conn: sqlite3.Connection) -> None:
    talk(writer, "s", ("why apples", "because pears"), ("and plums", "so quinces"), ("then figs", "at last dates"))
    assert (search.pending(conn), index(conn), search.pending(conn)) == (3, 3, 0)
    found = {word: holds(conn, word) for word in ("wrench", "apples", "pears", "plums", "quinces", "figs", "dates")}
    assert found == {
        "wrench": [1],
        "apples": [1],
        "pears": [1],
        "plums": [2],
        "quinces": [2],
        "figs": [3],
        "dates": [3],
    }


def test_a_question_that_is_asked_again_is_found_in_each_call_that_asks_it(
    writer: Writer, conn: sqlite3.Connection
) -> None:
    talk(writer, "a", ("run the tests", "done"))
    talk(writer, "b", ("run the tests", "done"))
    index(conn)
    assert (holds(conn, "tests"), holds(conn, "done"), holds(conn, "wrench")) == ([1, 2], [1, 2], [1])


def test_a_running_call_is_indexed_once_it_has_settled(writer: Writer, conn: sqlite3.Connection) -> None:
    running = opened(writer, asking("slow question"))
    recorded(writer, asking("quick question"), saying("quick"))
    index(conn)
    assert (search.pending(conn), holds(conn, "quick"), holds(conn, "slow")) == (0, [2], [])
    settled(writer, running, response=saying("slow answer"))
    assert search.pending(conn) == 1
    index(conn)
    assert (search.pending(conn), holds(conn, "slow")) == (0, [1])


def test_nothing_of_a_forgotten_session_is_left_in_the_index(writer: Writer, conn: sqlite3.Connection) -> None:
    talk(writer, "a", *((f"question{n} [{'word' * n}]", f"answer{n} " * n) for n in range(9)))
    index(conn)
    assert len(left(conn)) > 20
    search.unindex(conn, range(1, 10))
    assert left(conn) == []
    for table in ("search_known", "search_links", "search_cut"):
        assert conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    assert (search.pending(conn), index(conn), left(conn)) == (0, 0, []), "and it does not come back by itself"
    search.unindex(conn, range(1, 10))
    conn.execute("INSERT INTO search_texts (search_texts) VALUES ('integrity-check')")


def test_a_kept_record_is_found_by_what_a_forgotten_one_had_brought(writer: Writer, conn: sqlite3.Connection) -> None:
    talk(writer, "a", ("apples please", "pears"), ("plums", "quinces"), ("figs", "dates"))
    talk(writer, "b", ("nuts", "seeds"))
    index(conn)
    search.unindex(conn, [1])
    assert (holds(conn, "wrench"), holds(conn, "apples"), search.pending(conn)) == ([], [], 3)
    index(conn)
    assert (holds(conn, "wrench"), holds(conn, "apples"), holds(conn, "pears")) == ([2], [2], [2])
    search.unindex(conn, [2, 3])
    index(conn)
    assert (holds(conn, "wrench"), holds(conn, "apples"), holds(conn, "nuts")) == ([4], [], [4])
    search.unindex(conn, [4])
    assert left(conn) == []


def test_a_record_that_is_forgotten_before_it_was_indexed_is_never_indexed(
    writer: Writer, conn: sqlite3.Connection
) -> None:
    recorded(writer, asking("secret"), saying("hush"))
    recorded(writer, asking("open"), saying("loud"))
    search.begin_anew(conn)
    search.unindex(conn, [1])
    index(conn)
    assert left(conn) == ["loud", "open"]


def test_what_was_read_before_a_body_was_removed_is_not_indexed_after(writer: Writer, conn: sqlite3.Connection) -> None:
    recorded(writer, asking("secret"), saying("hush"))
    search.begin_anew(conn)
    read = extract(conn, 1)
    conn.execute("UPDATE records SET request_part = NULL, response_part = NULL")
    search.index(conn, [read])
    assert left(conn) == []
    index(conn)
    assert (left(conn), search.pending(conn)) == ([], 0)


def test_a_record_that_keeps_its_reply_is_found_by_it_again(writer: Writer, conn: sqlite3.Connection) -> None:
    recorded(writer, asking("secret"), saying("hush"))
    index(conn)
    search.unindex(conn, [1])
    conn.execute("UPDATE records SET request_part = NULL")
    search.index_again(conn, [1])
    assert search.pending(conn) == 1
    index(conn)
    assert left(conn) == ["hush"]


def test_a_sequence_that_is_given_out_again_is_indexed_again(writer: Writer, conn: sqlite3.Connection) -> None:
    recorded(writer, asking("first"), saying("a"))
    recorded(writer, asking("second"), saying("b"))
    index(conn)
    search.unindex(conn, [2])
    conn.execute("DELETE FROM records WHERE sequence = 2")
    recorded(writer, asking("third"), saying("c"))
    index(conn)
    assert (holds(conn, "second"), holds(conn, "third")) == ([], [2])


def test_an_index_that_another_reef_made_is_made_anew(writer: Writer, conn: sqlite3.Connection) -> None:
    recorded(writer, asking("first"), saying("a"))
    index(conn)
    conn.execute("UPDATE search_state SET extraction = 0")
    assert (search.ready(conn), search.pending(conn)) == (False, 1)
    index(conn)
    assert (search.ready(conn), search.pending(conn), holds(conn, "first")) == (True, 0, [1])


def test_a_record_with_too_many_words_is_indexed_in_part_says_so_and_can_be_taken_out(
    writer: Writer, conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WORDS_CHARS", 400)
    many = " ".join(f"old{number}" for number in range(200))
    talk(writer, "a", (many, "one"), ("short", "two"), ("last", "three"))
    index(conn)
    assert (search.state(conn), holds(conn, "last")) == ({"pending": 0, "cut": 1}, [3])
    assert (holds(conn, "old1"), holds(conn, "old199")) == ([1], [])
    search.unindex(conn, [1, 2, 3])
    assert (left(conn), search.state(conn)["cut"]) == ([], 0)


def test_merging_ends_and_leaves_no_word_of_what_was_removed_in_the_file(
    writer: Writer, conn: sqlite3.Connection, store: Path
) -> None:
    conn.execute("PRAGMA secure_delete=ON")
    for number in range(60):
        recorded(writer, asking(f"zebra{number} stays"), saying("yes"))
        index(conn)
    search.unindex(conn, range(1, 60))
    rounds = 0
    more = search.merge(conn, first=True)
    while more:
        rounds += 1
        assert rounds < 100
        more = search.merge(conn)
    blocks = b"".join(row[0] for row in conn.execute("SELECT block FROM search_texts_data"))
    assert blocks.count(b"zebra") == 1
    assert left(conn) == ["stays", "yes", "zebra59"]


def test_the_reader_says_how_much_is_not_in_the_index_yet(writer: Writer, reader: Reader) -> None:
    recorded(writer)
    assert reader.search_state() == {"pending": 1, "cut": 0}
