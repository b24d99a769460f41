"""What the calls of the last days say of the model server: prompts cut, tool arguments broken, newer words refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from reef.doctor.check import LATELY, Check, counted, lately
from reef.errors import ReefError
from reef.records.schema import open_readonly

_CUT = """SELECT count(*), max(expected_tokens), min(prompt_tokens) FROM records
 WHERE prompt_cut = 1 AND started_at >= ?"""
_BROKEN = """SELECT count(*), group_concat(DISTINCT model) FROM records
 WHERE notes_json LIKE '%"invalid_arguments"%' AND started_at >= ?"""
_REFUSED = """SELECT count(*) FROM records WHERE dialect = 'chat' AND status BETWEEN 400 AND 422 AND started_at >= ?
 AND (error LIKE '%max_completion_tokens%' OR answer_preview LIKE '%max_completion_tokens%'
 OR error LIKE '%developer%' OR answer_preview LIKE '%developer%')"""


def check(path: Path) -> Iterator[Check]:
    """Every check of recorded calls; none where the store cannot be read, which is another check's finding."""
    try:
        connection = open_readonly(path)
    except ReefError:
        return
    try:
        yield prompts(connection)
        yield arguments(connection)
        yield spellings(connection)
    except sqlite3.DatabaseError:
        # A damaged page: the check of the store names it.
        return
    finally:
        connection.close()


def prompts(connection: sqlite3.Connection) -> Check:
    """Prompts of which the server has likely dropped the front."""
    number, sent, counted_tokens = connection.execute(_CUT, (lately(),)).fetchone()
    if not number:
        return Check("prompts", "ok", f"no prompt of the last {LATELY.days} days was likely cut")
    sentence = (
        f"{counted(number, 'prompt')} of the last {LATELY.days} days likely lost the front, system text and tools first"
        f" (up to about {sent or 0:,} tokens sent, {counted_tokens or 0:,} counted): give the server a larger window"
    )
    return Check("prompts", "warn", sentence, "reef records list --cut")


def arguments(connection: sqlite3.Connection) -> Check:
    """Tool calls whose arguments are no JSON."""
    number, models = connection.execute(_BROKEN, (lately(),)).fetchone()
    if not number:
        return Check("tools", "ok", f"every tool call of the last {LATELY.days} days had arguments that can be read")
    sentence = (
        f"{counted(number, 'reply')} of the last {LATELY.days} days called a tool with arguments that are no JSON"
    )
    return Check(
        "tools", "warn", f"{sentence.replace('replys', 'replies')} ({models or 'unknown model'})", "reef records list"
    )


def spellings(connection: sqlite3.Connection) -> Check:
    """A server that refuses chat's newer words."""
    (number,) = connection.execute(_REFUSED, (lately(),)).fetchone()
    if not number:
        return Check("words", "ok", "the model server has refused none of chat's newer words lately")
    sentence = f"the model server refused `developer` or `max_completion_tokens` in {counted(number, 'call')} lately"
    return Check("words", "warn", sentence, "reef down && reef up --inference.upstream-spellings older")
