"""The one gate between text that an agent or a model made and the person's terminal.

`safe` shows every control character as a picture instead of sending it; every screen and every printing command
passes foreign strings through here and hands the outcome over as plain text, never as markup. The key-shaped
patterns live here as well, because recording, asks and admission all need the same list.
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

# A web token is looked for only where a word begins, behind one dash, or behind an escaped line end: a few times in a
# word, because each time the rest of the word is read.
_TOKEN_START = r"(?:(?<![A-Za-z0-9_-]eyJ)|(?<=[^A-Za-z0-9_-]-eyJ)|(?<=\\[nrt]eyJ)|(?<=\\[nrt]-eyJ))"
# A pattern begins with its literal and looks back for the word's edge, because the search jumps to literals only. In a
# JSON body the letter of an escaped line end or tab stands right before the word.
_CREDENTIALS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("anthropic-key", re.compile(r"sk-ant-[A-Za-z0-9_-]{20,}")),
    (
        "openai-key",
        re.compile(r"sk-(?:(?<=\bsk-)|(?<=\\[nrt]sk-))(?!ant-)(?:proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    ),
    ("github-token", re.compile(r"gh(?:(?<=\bgh)|(?<=\\[nrt]gh))[pousr]_[A-Za-z0-9]{30,}")),
    ("github-token", re.compile(r"github_pat_(?:(?<=\bgithub_pat_)|(?<=\\[nrt]github_pat_))[A-Za-z0-9_]{30,}")),
    ("gitlab-token", re.compile(r"glpat-(?:(?<=\bglpat-)|(?<=\\[nrt]glpat-))[A-Za-z0-9_-]{20,}")),
    ("aws-key-id", re.compile(r"A(?:KI|SI)A(?:(?<=\bA[KS]IA)|(?<=\\[nrt]A[KS]IA))[A-Z0-9]{16}\b")),
    ("slack-token", re.compile(r"xox(?:(?<=\bxox)|(?<=\\[nrt]xox))[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("google-key", re.compile(r"AIza(?:(?<=\bAIza)|(?<=\\[nrt]AIza))[A-Za-z0-9_-]{35}")),
    ("huggingface-token", re.compile(r"hf_(?:(?<=\bhf_)|(?<=\\[nrt]hf_))[A-Za-z0-9]{30,}")),
    ("stripe-key", re.compile(r"[rs]k_live_(?:(?<=\b[rs]k_live_)|(?<=\\[nrt][rs]k_live_))[A-Za-z0-9]{20,}")),
    ("jwt", re.compile("eyJ" + _TOKEN_START + r"[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    ("reef-token", re.compile(r"reef-(?:(?<=\breef-)|(?<=\\[nrt]reef-))[A-Za-z0-9_-]{43}\b")),
    ("private-key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?")),
)
_BYTES = tuple((kind, re.compile(pattern.pattern.encode())) for kind, pattern in _CREDENTIALS)
# Every call's bodies are searched, so this is made for speed: each trigger begins with one byte that many bodies do not
# have, and is exact enough that the patterns of its kinds run only where there is something to replace.
_TRIGGERS: tuple[tuple[bytes, re.Pattern[bytes], frozenset[str]], ...] = (
    (
        b"-",
        re.compile(
            rb"-(?:(?:(?<=\bsk-)|(?<=\\[nrt]sk-))[A-Za-z0-9_-]{20}|(?<=sk-)ant-[A-Za-z0-9_-]{20}"
            rb"|(?<=glpat-)[A-Za-z0-9_-]{20}|(?<=reef-)[A-Za-z0-9_-]{43}|(?<=xox[abeoprs]-)[A-Za-z0-9-]{10}"
            rb"|(?<=PRIVATE KEY-)----)"
        ),
        frozenset({"anthropic-key", "openai-key", "gitlab-token", "slack-token", "reef-token", "private-key"}),
    ),
    (
        b"_",
        re.compile(
            rb"_(?:(?<=gh[pousr]_)[A-Za-z0-9]{30}|(?<=github_pat_)[A-Za-z0-9_]{30}|(?<=hf_)[A-Za-z0-9]{30}"
            rb"|(?<=[rs]k_live_)[A-Za-z0-9]{20})"
        ),
        frozenset({"github-token", "huggingface-token", "stripe-key"}),
    ),
    (b"I", re.compile(rb"I(?<=A[KS]I)A[A-Z0-9]{16}"), frozenset({"aws-key-id"})),
    (b"z", re.compile(rb"z(?<=AIz)a[A-Za-z0-9_-]{35}"), frozenset({"google-key"})),
    (b"J", re.compile(rb"J(?<=[A-Za-z0-9_-]{10}\.eyJ)"), frozenset({"jwt"})),
)
# A large body is searched in pieces, so that no search holds the interpreter for long. What is searched for is far
# shorter than an overlap; only how it goes on may be longer.
_PIECE = 256 * 1024
_OVERLAP = 32 * 1024


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


def short_id(hex_id: str) -> str:
    """An id as people read it: first four and last two digits (`9f3c…e1`)."""
    return f"{hex_id[:4]}…{hex_id[-2:]}" if len(hex_id) > 8 else hex_id


def find_credentials(text: str) -> list[str]:
    """The kinds of credential-shaped strings in `text`, in the order of the list above; empty when there is none."""
    return list(dict.fromkeys(kind for kind, pattern in _CREDENTIALS if pattern.search(text)))


def redact(body: bytes) -> tuple[bytes, int]:
    """Replace credential-shaped strings by `[redacted:<kind>]`.

    Returns the new bytes and how many were replaced; the same object and 0 when nothing was found.
    """
    found: set[str] = set()
    for start in range(0, len(body), _PIECE):
        stop = start + _PIECE + _OVERLAP
        for first, trigger, kinds in _TRIGGERS:
            if body.find(first, start, stop) >= 0 and not kinds <= found and trigger.search(body, start, stop):
                found |= kinds
    total = 0
    for kind, pattern in _BYTES if found else ():
        if kind in found:
            body, count = _replace(pattern, b"[redacted:" + kind.encode() + b"]", body)
            total += count
    return body, total


def _replace(pattern: re.Pattern[bytes], marker: bytes, body: bytes) -> tuple[bytes, int]:
    """What `pattern.subn` does, one piece of the body after the other."""
    pieces: list[bytes] = []
    kept = place = 0
    while place < len(body):
        stop = place + _PIECE + _OVERLAP
        match = pattern.search(body, place, stop)
        if match is not None and match.end() >= stop:
            # The end of what was searched is not the end of what is there.
            place = match.start()
            match = pattern.match(body, place)
            if match is None:
                place += 1
                continue
        if match is None:
            place += _PIECE
            continue
        pieces += body[kept : match.start()], marker
        kept = place = match.end()
    return b"".join((*pieces, body[kept:])), len(pieces) // 2
