"""The one gate between text that an agent or a model made and the person's terminal.

`safe` shows every control character as a picture instead of sending it; every screen and every printing command
passes foreign strings through here and hands the outcome over as plain text, never as markup.
"""

from __future__ import annotations

import re
import unicodedata

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_PICTURES[0x7F] = 0x2421
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# Bidirectional controls reorder what a person reads; line and paragraph separators break tables.
_PICTURES |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029], 0xFFFD)
_SURROGATES = re.compile("[\ud800-\udfff]")


def safe(text: str) -> str:
    """`text` with every C0 and C1 control (except newline and tab), bidi control and lone surrogate made visible."""
    return _SURROGATES.sub("\ufffd", text.translate(_PICTURES))


def width(text: str) -> int:
    """Terminal columns that `text` takes: wide characters two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def one_line(text: str, columns: int = 80) -> str:
    """`text` as one safe line of at most `columns` columns, cut with an ellipsis; blank runs become one space."""
    flat = " ".join(safe(text[: columns * 8]).split())
    if width(flat) <= columns:
        return flat
    kept = flat
    while kept and width(kept) > columns - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def told(message: str, hint: str | None) -> str:
    """An error as programs without a screen print it: the sentence, and below it what to paste."""
    return f"error: {safe(message)}\n" + (f"hint: {safe(hint)}\n" if hint else "")


def short_id(hex_id: str) -> str:
    """An id as people read it: first four and last two digits (`9f3c…e1`)."""
    return f"{hex_id[:4]}…{hex_id[-2:]}" if len(hex_id) > 8 else hex_id
