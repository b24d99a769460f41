"""What a recorded call says, as texts to be found by: read from bodies of any dialect, without knowing the dialect.

Every string of a body is a text, except ids, types, roles, options and what is data and not words (images, sealed
reasoning). A tool call is one text: its name and the values of its arguments. The same bodies give the same texts for
as long as `EXTRACTION` is the same, which is what taking a record out of the index again depends on.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from typing import Any, NamedTuple

import orjson

from reef.records import parts

EXTRACTION = 1
"""Counts what changed in this module or in the index: a store whose index was made by another is indexed anew."""

COLUMNS = ("request", "reply", "tools")
REQUEST, REPLY, TOOLS = range(3)

BODY_BYTES = 4 * 1024 * 1024
"""Of a body, apart from its images and other data, no more than this is read."""
TEXT_CHARS = 1_000_000
"""Of one text, no more than this is read."""
REPEATED_CHARS = 8 * 1024
"""A longer message is found where it came first, a shorter one wherever it is what a call newly asked."""

_FEW_BYTES = 4096
_DEEPEST = 100
_SEALED = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + b"+/=_-"
_NO_WORDS = re.compile(r"[A-Za-z0-9+/=_-]{256,}")
_DATA_URL = re.compile(r"data:[^,\s]{0,200},")
# Scripts without spaces between words: each of their characters is a word to the index.
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
_WORD = re.compile(r"[^\x00-\x2f\x3a-\x60\x7b-\x7f]+")

_NAMES = frozenset((
    "id", "call_id", "tool_call_id", "tool_use_id", "item_id", "type", "role", "signature", "encrypted_content",
    "object", "status", "model", "finish_reason", "stop_reason", "cache_control", "media_type", "mime_type", "format",
    "detail", "logprobs", "usage", "system_fingerprint", "service_tier", "data", "file_data", "file_id",
    "previous_response_id", "container", "caller", "index", "$schema", "additionalProperties", "required",
))  # fmt: skip
"""Keys whose values say nothing, wherever they stand outside a tool call."""
_SAID_AT_TOP = frozenset((
    "system", "instructions", "prompt", "input", "query", "suffix", "text", "content", "contents", "message", "error",
))  # fmt: skip
_OPTIONS = frozenset((
    "metadata", "user", "tool_choice", "stop", "stop_sequences", "include", "reasoning", "thinking", "stream_options",
    "modalities", "context_management", "output_config", "prompt_cache_key", "safety_identifier", "logit_bias", "audio",
))  # fmt: skip


class Text(NamedTuple):
    """One text of a record."""

    column: int
    text: str
    always: bool
    """Whether it belongs to this call whoever said it before: what was newly asked, and what was answered."""
    hash: int
    """Eight bytes that stand for the text, as SQLite keeps integers."""


class Extracted(NamedTuple):
    """What a record says."""

    sequence: int
    places: tuple[int | None, ...]
    """Where its bodies were when they were read."""
    texts: list[Text]
    """What belongs to the call in any case comes first."""
    cut: bool
    """Whether a body or a text was longer than what is read of it."""


SELECT_PLACES = (
    "SELECT request_part, request_chain, response_part, response_chain, state, error FROM records WHERE sequence = ?"
)


def extract(conn: sqlite3.Connection, sequence: int) -> Extracted:
    """The texts of a record; none where its bodies are not stored. Raises Failed when a piece is lost."""
    row = conn.execute(SELECT_PLACES, (sequence,)).fetchone()
    if row is None or row[:4] == (None, None, None, None):
        return Extracted(sequence, (None,) * 4, [], False)
    request, cut = readable(conn, (row[0], row[1]))
    reply, reply_cut = readable(conn, (row[2], row[3]))
    texts = [*answered(reply), *asked(request)]
    if row[5]:
        texts.append(_text(REPLY, row[5], True))
    cut = cut or reply_cut or any(len(text.text) > TEXT_CHARS for text in texts)
    texts.sort(key=lambda text: not text.always)
    return Extracted(sequence, row[:4], texts, cut)


def unreadable(conn: sqlite3.Connection, sequence: int) -> Extracted:
    """What stands in for a record whose bodies are damaged."""
    row = conn.execute(SELECT_PLACES, (sequence,)).fetchone() or (None,) * 4
    return Extracted(sequence, row[:4], [], True)


def readable(conn: sqlite3.Connection, place: parts.Place) -> tuple[bytes, bool]:
    """A body without its long runs of data, and whether it was cut. Nothing of it holds the interpreter for long."""
    kept: list[bytes] = []
    size = 0
    for piece in parts.pieces(conn, place):
        if len(piece) >= _FEW_BYTES:
            head, found, rest = piece.partition(b";base64,") if piece.startswith(b"data:") else (b"", b"", piece)
            if not rest.translate(None, _SEALED):
                piece = head + found
        if size + len(piece) > BODY_BYTES:
            return b"".join(kept), True
        size += len(piece)
        kept.append(piece)
    return b"".join(kept), False


def asked(body: bytes) -> list[Text]:
    """The texts of a request."""
    value, found = _parsed(body), list[Text]()
    if not isinstance(value, dict):
        _collect(value, REQUEST, True, found)
        return found
    for name, inside in value.items():
        if name in _OPTIONS or name in _NAMES:
            continue
        if name == "tools" and isinstance(inside, list):
            found += [_text(REQUEST, "\n".join(_strings(tool)), False) for tool in inside]
        elif isinstance(inside, list):
            _messages(inside, name == "system", found)
        elif isinstance(inside, dict) or name in _SAID_AT_TOP:
            _collect(inside, REQUEST, name in ("prompt", "input", "query"), found)
    return found


def answered(body: bytes) -> list[Text]:
    """The texts of a reply."""
    value, found = _parsed(body), list[Text]()
    if not isinstance(value, dict):
        _collect(value, REPLY, True, found)
        return found
    for name, inside in value.items():
        # A response repeats the options of its request.
        if name in _NAMES or name in _OPTIONS or name in ("tools", "instructions", "input"):
            continue
        if isinstance(inside, list | dict) or name in _SAID_AT_TOP:
            _collect(inside, REPLY, True, found)
    return found


def words(text: str) -> list[str]:
    """The words of a text as they go into the index: each once, in lower case; what has no words in it is left out."""
    text = text[:TEXT_CHARS]
    if len(text) >= 256:
        text = _NO_WORDS.sub(" ", text)
    return list(dict.fromkeys(_WORD.findall(spaced(text).lower())))


def spaced(text: str) -> str:
    """`text` as SQLite takes it, with spaces around each character of a script that writes none."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text.encode("utf-8", "replace").decode())


def _messages(messages: list[Any], frame: bool, found: list[Text]) -> None:
    """The texts of a list of messages; those behind the last that the model said are what was newly asked."""
    last = max((place for place, message in enumerate(messages) if _by_model(message)), default=-1)
    for place, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        always = place > last and not frame and role != "system" and role != "developer"
        _collect(message, REPLY if _by_model(message) else REQUEST, always, found)


def _text(column: int, text: str, always: bool) -> Text:
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]
    always = always and len(text) <= REPEATED_CHARS
    return Text(column, text, always, int.from_bytes(found, "big", signed=True))


def _by_model(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    role, kind = message.get("role"), message.get("type")
    called = isinstance(kind, str) and kind.endswith("_call")
    return called or kind == "reasoning" or role == "assistant" or role == "model"


def _collect(value: Any, column: int, always: bool, found: list[Text], depth: int = 0) -> None:
    if isinstance(value, str):
        if value and not _DATA_URL.match(value):
            found.append(_text(column, value, always))
    elif depth > _DEEPEST:
        return
    elif isinstance(value, list):
        for inside in value:
            _collect(inside, column, always, found, depth + 1)
    elif isinstance(value, dict):
        if _is_call(value):
            found.append(_text(TOOLS, "\n".join(_call(value)), always))
            return
        for name, inside in value.items():
            if name not in _NAMES:
                _collect(inside, column, always, found, depth + 1)


def _is_call(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(value.get("name"), str) and (
        "arguments" in value or (isinstance(kind, str) and kind.endswith(("tool_use", "_call")))
    )


def _call(value: dict[str, Any]) -> list[str]:
    found = [str(value["name"])]
    for name in ("arguments", "input", "action"):
        given = value.get(name)
        if isinstance(given, str):
            parsed = _json(given.encode("utf-8", "surrogatepass"))
            given = parsed if isinstance(parsed, dict | list) else given
        found += _strings(given, everything=True)
    return found


def _strings(value: Any, everything: bool = False, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [] if _DATA_URL.match(value) else [value]
    if depth > _DEEPEST or not isinstance(value, list | dict):
        return []
    inner = value if isinstance(value, list) else [v for name, v in value.items() if everything or name not in _NAMES]
    return [text for inside in inner for text in _strings(inside, everything, depth + 1)]


def _parsed(body: bytes) -> Any:
    """The value of a body; of one that is no JSON, or JSON that was cut, its text."""
    if not body:
        return None
    found = _json(body)
    return body.decode("utf-8", "replace") if found is None else found


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
