"""Foreign text as terminal columns: made safe, measured, cut, padded and wrapped without splitting a cluster.

Terminals disagree about joined emoji and variation selectors, so those invisible joiners are taken out before text is
measured: what is left has the same width everywhere, and reef's columns line up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size

from reef.text import safe

# Joiners, variation selectors, skin tones: they change how wide a terminal draws the character before them.
_JOINERS = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
# Format characters that draw nothing could hide text from the person, for example Unicode tags.
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u2061-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_WORDS = re.compile(r"\s+|[^\s]+")
TAB = "    "


def shown(text: object) -> str:
    """`text` as it may be painted: newlines kept, tabs as blanks, controls and invisible characters made visible."""
    plain = safe(str(text)).replace("\t", TAB)
    if plain.isascii():
        return plain
    return _INVISIBLE.sub("\ufffd", _JOINERS.sub("", plain))


def line(text: object, columns: int = 200) -> str:
    """`text` as one painted line of at most `columns` columns: blank runs are one space."""
    return cut(" ".join(shown(str(text)[: columns * 8]).split()), columns)


def width(text: str) -> int:
    """Terminal columns of `text`, which has passed `shown`."""
    return len(text) if text.isascii() else cell_len(text)


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Each visible character with the marks that combine with it, and its columns."""
    held, columns = "", 0
    for character in text:
        size = get_character_cell_size(character)
        if size == 0 and held:
            held += character
            continue
        if held:
            yield held, columns
        held, columns = character, size
    if held:
        yield held, columns


def cut(text: str, columns: int, mark: str = "…") -> str:
    """`text` in at most `columns` columns, with `mark` where something is left out."""
    if columns <= 0:
        return ""
    if len(text) <= columns and text.isascii():
        return text
    if width(text) <= columns:
        return text
    kept, used, room = [], 0, columns - width(mark)
    for cluster, size in clusters(text):
        if used + size > room:
            break
        kept.append(cluster)
        used += size
    return "".join(kept).rstrip() + mark if room >= 0 else mark[:columns]


def fit(text: str, columns: int, right: bool = False) -> str:
    """`text` cut or padded to exactly `columns` columns, at the left or (`right`) at the right edge."""
    if columns <= 0:
        return ""
    short = cut(text, columns)
    blank = " " * (columns - width(short))
    return blank + short if right else short + blank


def words(text: str) -> list[str]:
    """`text` as runs of blanks and runs of other characters, in order."""
    return _WORDS.findall(text)


def wrap(text: str, columns: int) -> list[str]:
    """One line of `text` as lines of at most `columns` columns, broken at blanks where that is possible.

    Continuation lines keep the indentation of the first as long as half of the width is left for text.
    """
    if columns <= 0:
        return []
    if width(text) <= columns:
        return [text.rstrip()]
    indent = len(text) - len(text.lstrip(" "))
    # A wide character needs two columns behind it.
    lead = " " * (indent if indent <= columns // 2 and columns - indent >= 2 else 0)
    lines: list[str] = []
    held, used = lead, len(lead)
    for word in words(text[indent:] if lead else text.lstrip(" ")):
        size = width(word)
        if used + size <= columns:
            held, used = held + word, used + size
            continue
        if held.strip():
            lines.append(held.rstrip())
            held, used = lead, len(lead)
        if word.isspace():
            continue
        for piece, piece_size in pieces(word, columns - len(lead)):
            if used + piece_size > columns and held.strip():
                lines.append(held)
                held, used = lead, len(lead)
            held, used = held + piece, used + piece_size
    if held.strip() or not lines:
        lines.append(held.rstrip())
    return lines


def pieces(word: str, columns: int) -> Iterator[tuple[str, int]]:
    """`word` in pieces of at most `columns` columns; a cluster that is wider than that stands for itself as `…`."""
    held, used = "", 0
    for cluster, size in clusters(word):
        if size > columns:
            cluster, size = "…", 1
        if used + size > columns:
            yield held, used
            held, used = "", 0
        held, used = held + cluster, used + size
    if held:
        yield held, used
