"""What must not be kept: whatever is shaped like a credential, and the secrets that this process itself holds.

Everything that is stored or logged passes `redact` or `clean` on its way, before it is hashed: bodies, rows, lines of a
log, the words of a step. The patterns know a key by its shape; `HELD` knows the keys of this process, which may have
any shape, in the forms in which a server that was sent one says it back.
"""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote_plus, urlsplit

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

# Where bytes come in pieces, a piece is cut between words; in a long row of letters without a blank, between whatever
# no pattern takes for a part of a key.
_WORD = bytes(range(0x21, 0x7F))
_KEY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_LONG_WORD = 4096
_ENDLESS_WORD = 64 * 1024
_BEGIN = b"-----BEGIN "
_WHOLE = re.compile(rb"-----BEGIN [^-]*-----[^-]*-----END [^-]*-----")

# Shorter ones are words that stand in every other text, and so are the names that keyless servers are given for a key.
_LEAST_SECRET = 8
_NAME = 64
"""Up to this many characters a text is likely a name that comes again."""
_PLACEHOLDERS = frozenset({"lm-studio", "lmstudio", "no-api-key", "no-key-required", "not-needed", "placeholder"})
_SECRET = b"[redacted:secret]"


class Held:
    """The secrets of one process. They are added while it starts and as its engines are made, and never taken out."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with every secret that is added: what was clean before may hold it."""
        # Replaced as one: other threads look while an engine is made.
        self._known: tuple[tuple[bytes, ...], re.Pattern[bytes] | None] = ((), None)

    def add(self, secret: str | None) -> None:
        """Keep `secret` out of everything that is stored from now on."""
        secret = (secret or "").strip()
        if secret.lower() in _PLACEHOLDERS:
            return
        forms = {form for form in _forms(secret) if len(form) >= _LEAST_SECRET}
        # The longest first, so that no form of it is left in pieces.
        known = tuple(sorted(forms.union(self._known[0]), key=lambda form: (-len(form), form)))
        self._known = known, re.compile(b"|".join(re.escape(form) for form in known)) if known else None
        self.version += 1

    def add_address(self, url: str) -> None:
        """Keep out what `url` holds: a password, or a user name that stands alone, and the values of its query."""
        parts = urlsplit(url)
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        found = [password or user]
        if password:
            pair = f"{unquote_plus(user)}:{unquote_plus(password)}"
            found.append(base64.b64encode(pair.encode()).decode())
        for part in parts.query.split("&"):
            name, _, value = part.partition("=")
            # Providers ask for the version of their API in the same place.
            if "version" not in name.lower():
                found.append(value or name)
        for text in found:
            self.add(text)
            self.add(unquote_plus(text))

    def cut(self, body: bytes) -> tuple[bytes, int]:
        """`body` with every secret replaced, and how many there were; the same object when there was none."""
        known, pattern = self._known
        for form in known:
            if form in body if len(body) <= _PIECE else _stands_in(body, form):
                assert pattern is not None
                return _replace(pattern, _SECRET, body)
        return body, 0


HELD = Held()
"""The secrets of this process."""


def hold(secret: str | None) -> None:
    """Keep `secret` out of everything that this process stores."""
    HELD.add(secret)


def hold_address(url: str | None) -> None:
    """Keep the secrets that stand in `url` out of everything that this process stores."""
    if url:
        HELD.add_address(url)


def find_credentials(text: str) -> list[str]:
    """The kinds of credentials in `text`, in the order of the list above; empty when there is none.

    A secret of this process is of the kind `secret`.
    """
    shaped = dict.fromkeys(kind for kind, pattern in _CREDENTIALS if pattern.search(text))
    held = HELD.cut(text.encode("utf-8", "surrogatepass"))[1]
    return [*shaped, *(["secret"] if held else [])]


def redact(body: bytes, shaped: bool = True) -> tuple[bytes, int]:
    """Replace credentials by `[redacted:<kind>]`; with `shaped=False` only the secrets of this process.

    Returns the new bytes and how many were replaced; the same object and 0 when nothing was found.
    """
    # Held ones first: a pattern may know only a part of one.
    body, total = HELD.cut(body)
    found: set[str] = set()
    for start in range(0, len(body) if shaped else 0, _PIECE):
        stop = start + _PIECE + _OVERLAP
        for first, trigger, kinds in _TRIGGERS:
            if body.find(first, start, stop) >= 0 and not kinds <= found and trigger.search(body, start, stop):
                found |= kinds
    for kind, pattern in _BYTES if found else ():
        if kind in found:
            body, count = _replace(pattern, b"[redacted:" + kind.encode() + b"]", body)
            total += count
    return body, total


def clean(text: str, shaped: bool = True) -> str:
    """`text` as it may be kept: credentials cut out as `redact` does, half surrogate pairs as `?`."""
    return _clean_again(text, shaped, HELD.version) if len(text) <= _NAME else _clean(text, shaped)


def _clean(text: str, shaped: bool) -> str:
    changed, count = redact(text.encode("utf-8", "replace"), shaped)
    return changed.decode("utf-8", "replace") if count or not text.isascii() else text


# A row is mostly made of names that stand in every other row too: a scenario, a model, a route.
@lru_cache(maxsize=1024)
def _clean_again(text: str, shaped: bool, version: int) -> str:
    return _clean(text, shaped)


class Sieve:
    """Cuts credentials out of bytes that come in pieces; what may be the beginning of one waits for what follows."""

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be passed on by now, redacted."""
        data = self._waiting + piece
        end = len(data.rstrip(_WORD))
        if len(data) - end > _LONG_WORD:
            end = len(data.rstrip(_KEY))
        if len(data) - end > _ENDLESS_WORD:
            end = len(data)
        begin = data.rfind(_BEGIN, 0, end)
        if begin >= 0 and len(data) - begin < _ENDLESS_WORD and not _WHOLE.match(data, begin, end):
            end = begin
        self._waiting = data[end:]
        return redact(data[:end])[0]

    def rest(self) -> bytes:
        """What is left when nothing more comes."""
        data, self._waiting = self._waiting, b""
        return redact(data)[0]


def clean_json(value: Any) -> Any:
    """`value` with every text in it cleaned, names too; lists and objects are changed in place, however deep."""
    if isinstance(value, str):
        return clean(value)
    waiting = [value]
    while waiting:
        place = waiting.pop()
        if isinstance(place, dict):
            cleaned = {_cleaned(name): _cleaned(part) for name, part in place.items()}
            place.clear()
            place.update(cleaned)
            waiting += cleaned.values()
        elif isinstance(place, list):
            place[:] = [_cleaned(part) for part in place]
            waiting += place
    return value


def _cleaned(part: Any) -> Any:
    return clean(part) if isinstance(part, str) else part


def _forms(secret: str) -> set[bytes]:
    """How a server may write `secret` into its reply: as it is, within JSON, within JSON within JSON, in a URL."""
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    escaped = json.dumps(secret)[1:-1]
    inside = json.dumps(escaped)[1:-1]
    written = {secret, plain, escaped, inside, escaped.replace("/", "\\/"), quote(secret, safe="", errors="replace")}
    return {text.encode("utf-8", "replace") for text in written}


def _stands_in(body: bytes, form: bytes) -> bool:
    return any(body.find(form, start, start + _PIECE + _OVERLAP) >= 0 for start in range(0, len(body), _PIECE))


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
