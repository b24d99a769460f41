"""Searching records: what a person types becomes words that the index knows; what it does not know is looked up.

Words stand in any order within what is new in one call. The index knows which column of which record holds a word, not
where: a phrase in quotes, and a word that the index takes for several (`parse_config`), is looked for in the texts of
the records that hold its parts. Nothing that can be typed is an error.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from reef.errors import Failed
from reef.records import lists, search
from reef.records.filters import Filter
from reef.records.texts import COLUMNS, Text, extract, spaced

Row = dict[str, Any]

LOOKED_AT = 2000
"""Records that are read for phrases in one search at most, …"""
LOOKING_S = 2.0
"""… and the time after which no more are."""
AROUND = 60
"""Characters of a snippet before and behind what was found."""
_PAGE = 50
_TYPED = re.compile(r'(?:(request|reply|tools?):)?(?:"([^"]*)"?(\*?)|([^\s"]+))', re.IGNORECASE)
_place = threading.local()


@dataclass(frozen=True)
class Term:
    """One thing that must be found."""

    words: tuple[str, ...]
    """As the index has them; more than one in this order and with nothing but punctuation between."""
    column: int | None = None
    open: bool = False
    """Whether the last word may go on."""

    @property
    def match(self) -> str:
        """The term as FTS5 is asked for it."""
        parts = [f'"{word}"' for word in self.words]
        parts[-1] += "*" if self.open else ""
        of = "" if self.column is None else f"{COLUMNS[self.column]} : "
        return f"{of}({' AND '.join(parts)})"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The term in a text that `plain` has gone over."""
        between = [re.escape(self.words[0])]
        for before, word in zip(self.words, self.words[1:], strict=False):
            apart = "*" if _unspaced(before) or _unspaced(word) else "+"
            between += [rf"[\W_]{apart}", re.escape(word)]
        start = "" if _unspaced(self.words[0]) else r"(?<![^\W_])"
        end = "" if self.open or _unspaced(self.words[-1]) else r"(?![^\W_])"
        return re.compile(start + "".join(between) + end)

    def within(self, text: Text) -> tuple[int, int] | None:
        """Where a text holds the term."""
        if self.column is not None and text.column != self.column:
            return None
        found = self.pattern.search(plain(text.text))
        return None if found is None else found.span()


def terms(typed: str) -> list[Term]:
    """What is asked for: words, `"phrases"`, `beginnings*`, each after `tool:`, `reply:` or `request:` if need be."""
    found: list[Term] = []
    for of, phrase, phrase_open, word in _TYPED.findall(typed):
        column = None if not of else ("request", "reply", "tool").index(of.lower().removesuffix("s"))
        text = phrase or word
        words = index_words(text.replace("\0", " "))
        if words:
            found.append(Term(words, column, bool(phrase_open) or (not phrase and word.endswith("*"))))
    return found


def find(
    conn: sqlite3.Connection,
    typed: str,
    wanted: Filter | None = None,
    limit: int = 20,
    before: int | None = None,
) -> Row:
    """Search: `{"records", "pending", "cut", "looked_back_to"}`, newest first.

    A record has, besides the list's keys, `snippet` (one line around what was found; None where the body is gone) and
    `found_in` (`request`, `reply` or `tools`). `pending` records are not in the index yet, `cut` ones only in part;
    `looked_back_to` is the sequence at which a long search gave up, None when it did not.
    """
    state = search.state(conn)
    asked = terms(typed)
    sequences, stopped = _sequences(conn, asked, wanted or Filter(), limit, before) if asked else ([], None)
    found = []
    for row in lists.rows(conn, sequences):
        snippet, column = _snippet(_texts(conn, row["sequence"]), asked)
        found.append(row | {"snippet": snippet, "found_in": column})
    return {"records": found, **state, "looked_back_to": stopped}


def index_words(text: str) -> tuple[str, ...]:
    """The words of a text as the index tells them apart: asked of SQLite itself, in memory."""
    conn: sqlite3.Connection | None = getattr(_place, "conn", None)
    if conn is None:
        conn = _place.conn = sqlite3.connect(":memory:", isolation_level=None)
        conn.execute("CREATE VIRTUAL TABLE typed USING fts5(text, tokenize='unicode61 remove_diacritics 2')")
        conn.execute("CREATE VIRTUAL TABLE typed_words USING fts5vocab(typed, instance)")
    conn.execute("DELETE FROM typed")
    conn.execute("INSERT INTO typed (text) VALUES (?)", (spaced(text).lower(),))
    return tuple(row[0] for row in conn.execute("SELECT term FROM typed_words ORDER BY offset"))


def plain(text: str) -> str:
    """`text` in lower case and without accents, character for character."""
    lower = text.lower()
    if lower.isascii():
        return lower
    return "".join([_plain_character(character) for character in text])


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    return unicodedata.normalize("NFD", character.lower())[0]


def _unspaced(word: str) -> bool:
    return spaced(word) != word


def _sequences(
    conn: sqlite3.Connection, asked: list[Term], wanted: Filter, limit: int, before: int | None
) -> tuple[list[int], int | None]:
    """The sequences of what fits, newest first, and where a long search gave up."""
    where, values = wanted.conditions(conn)
    statement = (
        "SELECT search_texts.rowid FROM search_texts"
        + (" JOIN records ON records.sequence = search_texts.rowid" if where else "")
        + lists.clause(["search_texts MATCH ?", "search_texts.rowid < ?", *where])
        + " ORDER BY search_texts.rowid DESC LIMIT ?"
    )
    match = " AND ".join(term.match for term in asked)
    phrases = [term for term in asked if len(term.words) > 1]
    found: list[int] = []
    looked, until = 0, time.monotonic() + LOOKING_S
    edge = 2**63 - 1 if before is None else before
    size = max(limit, _PAGE) if phrases else limit
    while len(found) < limit:
        page = [row[0] for row in conn.execute(statement, (match, edge, *values, size))]
        for sequence in page:
            if phrases and (looked >= LOOKED_AT or time.monotonic() > until):
                return found, edge
            edge = sequence
            looked += 1
            if not phrases or _holds(_texts(conn, sequence), phrases):
                found.append(sequence)
                if len(found) == limit:
                    break
        if len(page) < size:
            break
    return found, None


def _holds(texts: list[Text], phrases: list[Term]) -> bool:
    return all(any(term.within(text) for text in texts) for term in phrases)


def _texts(conn: sqlite3.Connection, sequence: int) -> list[Text]:
    try:
        return extract(conn, sequence).texts
    except Failed:
        # A damaged body is for `reef doctor` to tell; here it is as good as gone.
        return []


def _snippet(texts: list[Text], asked: list[Term]) -> tuple[str | None, str | None]:
    """One line around the rarest kind of what was asked for, and the column that it stands in."""
    for term in sorted(asked, key=lambda term: -len("".join(term.words))):
        for text in texts:
            place = term.within(text)
            if place is not None:
                start, end = place
                line = " ".join(text.text[max(0, start - AROUND) : end + AROUND].split())
                before, behind = start > AROUND, end + AROUND < len(text.text)
                return f"{'…' * before}{line}{'…' * behind}", COLUMNS[text.column]
    return None, None
