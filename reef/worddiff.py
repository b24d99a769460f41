"""Differences word by word: a unified difference as lines, in which a changed line says which of its words changed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

Part = tuple[str, str]
"""`("=", text)`, `("-", text)` or `("+", text)`."""

ALIKE = 0.5
"""How much of two lines must be the same words for the rest to be marked."""
NEAR = 5
"""How many added lines are looked at for one that a removed line became."""
MOST_WORDS = 2000
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_HEADERS = ("+++ ", "--- ")


def parts(old: str, new: str) -> list[Part] | None:
    """Two versions of a line as one list of parts; None when they are not alike."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    if not before or not after or len(before) + len(after) > MOST_WORDS:
        return None
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.quick_ratio() < ALIKE or matcher.ratio() < ALIKE:
        return None
    found: list[Part] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            found.append(("=", "".join(before[a:b])))
            continue
        found += [(sign, "".join(words)) for sign, words in (("-", before[a:b]), ("+", after[c:d])) if words]
    return found


def pairs(removed: list[str], added: list[str]) -> dict[int, tuple[int, list[Part]]]:
    """Which removed line became which added line: place of the one to place of the other, with their parts."""
    found: dict[int, tuple[int, list[Part]]] = {}
    start = 0
    for place, old in enumerate(removed):
        for other in range(start, min(start + NEAR, len(added))):
            same = parts(old, added[other])
            if same is not None:
                found[place] = (other, same)
                start = other + 1
                break
    return found


def lines(hunks: str) -> list[dict[str, Any]]:
    """A unified difference as lines `{"sign", "text"}`, without its headers.

    Signs: ` ` both have it, `-` only the old, `+` only the new, `@` the place of a hunk, `~` changed words, `\\` no
    newline at the end. A `~` line also has `words`, a list of `[sign, text]`; any other text comes as one line of sign
    `!`.
    """
    found: list[dict[str, Any]] = []
    removed: list[str] = []
    added: list[str] = []
    for line in _body(hunks):
        sign, text = line[:1], line[1:]
        if sign == "-" and not added:
            removed.append(text)
            continue
        if sign == "+":
            added.append(text)
            continue
        found += _changed(removed, added)
        removed, added = ([text], []) if sign == "-" else ([], [])
        if sign != "-":
            known = sign in (" ", "@", "\\")
            found.append({"sign": sign if known else "!", "text": line if sign == "@" or not known else text})
    return found + _changed(removed, added)


def _body(hunks: str) -> list[str]:
    rows = hunks.split("\n")
    while rows and rows[0].startswith(_HEADERS):
        rows.pop(0)
    return rows[:-1] if rows and not rows[-1] else rows


def _changed(removed: list[str], added: list[str]) -> list[dict[str, Any]]:
    return list(_in_order(removed, added, pairs(removed, added)))


def _in_order(
    removed: list[str], added: list[str], paired: dict[int, tuple[int, list[Part]]]
) -> Iterator[dict[str, Any]]:
    told = 0
    for place, text in enumerate(removed):
        if place not in paired:
            yield {"sign": "-", "text": text}
            continue
        other, words = paired[place]
        yield from ({"sign": "+", "text": new} for new in added[told:other])
        yield {"sign": "~", "text": added[other], "words": [list(part) for part in words]}
        told = other + 1
    yield from ({"sign": "+", "text": new} for new in added[told:])
