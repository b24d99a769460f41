"""The search index: filled record by record with what is new in each, and emptied of what is forgotten.

An agent sends its whole conversation with every call, so of what a call repeats only texts that no earlier record
brought are indexed; `search_known` says which record a text was found in first. What a call newly asked and what was
answered is indexed in any case. The index keeps no text (`content=''`): taking a record out gives SQLite the same words
again, read from the bodies, which is why that must come before they are removed.

What changes the index runs in the writer's thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from reef.records.texts import COLUMNS, EXTRACTION, SELECT_PLACES, Extracted, Text, extract, words

WORDS_CHARS = 128 * 1024
"""Characters of different words that one record brings into the index at most. About 20 ms of the writer's time."""
LOOK = 500

_ADD = "INSERT INTO search_texts (rowid, request, reply, tools) VALUES (?, ?, ?, ?)"
_REMOVE = "INSERT INTO search_texts (search_texts, rowid, request, reply, tools) VALUES ('delete', ?, ?, ?, ?)"
_ABOVE = """WITH RECURSIVE above(record) AS (
    VALUES (?) UNION SELECT earlier FROM above JOIN search_links ON search_links.record = above.record
) SELECT record FROM above"""
_BELOW = """WITH RECURSIVE below(record) AS (
    VALUES (?) UNION SELECT search_links.record FROM below JOIN search_links ON search_links.earlier = below.record
) SELECT record FROM below"""
_NEXT = """SELECT sequence FROM search_marks JOIN records ON records.sequence = search_marks.record
 WHERE search_marks.mark < 2 AND records.state != 'open' ORDER BY sequence LIMIT ?"""
_MARK = "INSERT INTO search_marks (record, mark) VALUES (?, ?) ON CONFLICT (record) DO UPDATE SET mark = excluded.mark"
_NEW, _AGAIN, _OUT = range(3)
"""Marks: not in the index yet; in it, to be looked at again; taken out for good."""


def ready(conn: sqlite3.Connection) -> bool:
    """Whether the index was made by this reef; `begin_anew` is due otherwise."""
    return bool(conn.execute("SELECT extraction = ? FROM search_state", (EXTRACTION,)).fetchone()[0])


def begin_anew(conn: sqlite3.Connection) -> None:
    """Empty the index; every record is pending afterwards, but for those that were taken out."""
    conn.execute("INSERT INTO search_texts (search_texts) VALUES ('delete-all')")
    for table in ("search_known", "search_links", "search_cut"):
        conn.execute(f"DELETE FROM {table}")
    conn.execute("DELETE FROM search_marks WHERE mark != ?", (_OUT,))
    conn.execute("UPDATE search_state SET extraction = ?, upto = 0", (EXTRACTION,))


def pending(conn: sqlite3.Connection) -> int:
    """How many records are not in the index yet, apart from calls that still run."""
    upto = _upto(conn) if ready(conn) else 0
    later, due, running = conn.execute(
        "SELECT (SELECT count(*) FROM records WHERE sequence > ?),"
        " (SELECT count(*) FROM search_marks WHERE mark < 2 AND record <= ?),"
        " (SELECT count(*) FROM records WHERE state = 'open')",
        (upto, upto),
    ).fetchone()
    return int(later + due - running)


def cut_in_index(conn: sqlite3.Connection) -> int:
    """How many records are in the index with a part of their text only, as that was very long."""
    return int(conn.execute("SELECT count(*) FROM search_cut").fetchone()[0])


def next_records(conn: sqlite3.Connection, limit: int) -> list[int]:
    """The next records to index, oldest first."""
    found = [row[0] for row in conn.execute(_NEXT, (limit,))]
    rows = conn.execute(
        "SELECT sequence FROM records WHERE sequence > ? ORDER BY sequence LIMIT ?", (_upto(conn), limit - len(found))
    )
    return found + [row[0] for row in rows]


def size_of_news(conn: sqlite3.Connection, record: Extracted) -> int:
    """About how many characters of a record the index has to take in."""
    known = _known(conn, record.texts)
    return min(sum(len(text.text) for text in record.texts if text.always or text.hash not in known), WORDS_CHARS)


def index(conn: sqlite3.Connection, records: Sequence[Extracted]) -> None:
    """Bring records into the index, or those that are in it up to date, in the order of `next_records`.

    A record that is still open, or whose bodies are no longer those that were read, stays pending.
    """
    upto = _upto(conn)
    for record in records:
        sequence = record.sequence
        mark = _mark(conn, sequence)
        row = conn.execute(SELECT_PLACES, (sequence,)).fetchone()
        settled = sequence <= upto and mark is None
        upto = max(upto, sequence)
        if settled or mark == _OUT or row is None:
            continue
        if row[4] == "open" or row[:4] != record.places:
            if mark is None:
                conn.execute(_MARK, (sequence, _NEW))
            continue
        _index_one(conn, record, mark == _AGAIN)
        conn.execute("DELETE FROM search_marks WHERE record = ?", (sequence,))
    conn.execute("UPDATE search_state SET upto = ?", (upto,))


def unindex(conn: sqlite3.Connection, sequences: Iterable[int]) -> None:
    """Take every word of these records out of the index, for good. Their bodies must still be there.

    Kept records that repeat what these brought become pending, so that they are found by it again. What SQLite has
    marked as removed leaves the file with `merge`. A record of which something stays is named to `index_again` once
    the rest is gone. Doing it twice is doing it once. Each record costs some milliseconds of the writer's time. Raises
    Failed when a body that is needed is damaged; `begin_anew` is the way out then.
    """
    if not ready(conn):
        begin_anew(conn)
    gone = {sequence for sequence in sequences if _mark(conn, sequence) != _OUT}
    upto, repeat = _upto(conn), set[int]()
    for sequence in sorted(gone):
        repeat |= {row[0] for row in conn.execute(_BELOW, (sequence,))}
        if sequence <= upto and _mark(conn, sequence) != _NEW:
            _remove(conn, extract(conn, sequence))
    for sequence in gone:
        conn.execute("DELETE FROM search_links WHERE earlier = ?", (sequence,))
        conn.execute(_MARK, (sequence, _OUT))
    for sequence in repeat - gone:
        if sequence <= upto and _mark(conn, sequence) is None:
            conn.execute(_MARK, (sequence, _AGAIN))


def index_again(conn: sqlite3.Connection, sequences: Iterable[int]) -> None:
    """Make records pending that `unindex` has taken out and of which something stays."""
    for sequence in sequences:
        conn.execute("UPDATE search_marks SET mark = ? WHERE record = ? AND mark = ?", (_NEW, sequence, _OUT))


def merge(conn: sqlite3.Connection, pages: int = 64, first: bool = False) -> bool:
    """Put a few pages of the index in order; False once nothing is left to do.

    Words that were removed are in the file until then. Begun with `first`, and repeated without until it says False.
    """
    before = conn.total_changes
    conn.execute("INSERT INTO search_texts (search_texts, rank) VALUES ('merge', ?)", (-pages if first else pages,))
    return conn.total_changes - before > 1


def _upto(conn: sqlite3.Connection) -> int:
    return int(conn.execute("SELECT upto FROM search_state").fetchone()[0])


def _mark(conn: sqlite3.Connection, sequence: int) -> int | None:
    row = conn.execute("SELECT mark FROM search_marks WHERE record = ?", (sequence,)).fetchone()
    return None if row is None else int(row[0])


def _index_one(conn: sqlite3.Connection, record: Extracted, again: bool) -> None:
    known = _remove(conn, record) if again else _known(conn, record.texts)
    columns, brought, cut = _chosen(record, known)
    if any(columns):
        conn.execute(_ADD, (record.sequence, *columns))
    conn.executemany(
        "INSERT OR IGNORE INTO search_known (hash, record) VALUES (?, ?)", [(hash, record.sequence) for hash in brought]
    )
    if cut:
        conn.execute("INSERT OR IGNORE INTO search_cut (record) VALUES (?)", (record.sequence,))
    _link(conn, record.sequence, set(known.values()))


def _remove(conn: sqlite3.Connection, record: Extracted) -> dict[int, int]:
    """Take a record out of the index; returns which of its texts other records brought."""
    known = _known(conn, record.texts)
    others = {hash: owner for hash, owner in known.items() if owner != record.sequence}
    own = known.keys() - others.keys()
    columns, _, _ = _chosen(record, others, own)
    if any(columns):
        conn.execute(_REMOVE, (record.sequence, *columns))
    conn.executemany("DELETE FROM search_known WHERE hash = ?", [(hash,) for hash in own])
    conn.execute("DELETE FROM search_links WHERE record = ?", (record.sequence,))
    conn.execute("DELETE FROM search_cut WHERE record = ?", (record.sequence,))
    return others


def _known(conn: sqlite3.Connection, texts: Sequence[Text]) -> dict[int, int]:
    """Which of the texts are indexed, by their hash, and in which record."""
    found: dict[int, int] = {}
    hashes = list({text.hash for text in texts})
    for start in range(0, len(hashes), LOOK):
        some = hashes[start : start + LOOK]
        marks = ", ".join("?" * len(some))
        found.update(conn.execute(f"SELECT hash, record FROM search_known WHERE hash IN ({marks})", some))
    return found


def _chosen(
    record: Extracted, known: dict[int, int], own: Iterable[int] | None = None
) -> tuple[tuple[str, ...], list[int], bool]:
    """The words of a record by column, the hashes of the texts that they are from, and whether some were too many.

    `known` are texts of other records. With `own`, the record is in the index already: of what it repeats it brought
    those texts and no others.
    """
    brought: list[int] = []
    seen: set[int] = set()
    columns: list[dict[str, None]] = [{} for _ in COLUMNS]
    left, cut = WORDS_CHARS, record.cut
    for text in record.texts:
        hash = text.hash
        if hash in seen or (not text.always and (hash in known if own is None else hash not in own)):
            continue
        seen.add(hash)
        into = columns[text.column]
        new = [word for word in words(text.text) if word not in into]
        size = sum(map(len, new)) + len(new)
        if size > left:
            cut = True
            if not text.always:
                # Left to the next record that repeats it.
                continue
            new = _that_fit(new, left)
            size = left
        left -= size
        into.update(dict.fromkeys(new))
        brought.append(hash)
    return tuple(" ".join(column) for column in columns), brought, cut


def _that_fit(found: list[str], size: int) -> list[str]:
    fit: list[str] = []
    for word in found:
        size -= len(word) + 1
        if size < 0:
            break
        fit.append(word)
    return fit


def _link(conn: sqlite3.Connection, sequence: int, owners: set[int]) -> None:
    """Remember which records brought what this one repeats; those that are reached over another are left out."""
    rest = set(owners)
    while rest:
        nearest = max(rest)
        conn.execute("INSERT OR IGNORE INTO search_links (earlier, record) VALUES (?, ?)", (nearest, sequence))
        if len(rest) == 1:
            return
        rest -= {row[0] for row in conn.execute(_ABOVE, (nearest,))}


def state(conn: sqlite3.Connection) -> dict[str, Any]:
    """What `reef status` shows: records not in the index yet, and those that are in it with a part of their text."""
    return {"pending": pending(conn), "cut": cut_in_index(conn)}
