"""What the gateway writes about one call: a row before the first reply byte, its end, and progress in between.

The operations run in the `Writer`'s thread. For bodies over `LARGE` bytes use `reef.records.recorder`, which cuts,
hashes and compresses them elsewhere and hands over what is ready.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from reef import events
from reef.credentials import clean
from reef.errors import NotFound
from reef.ids import from_blob, to_blob, utc_now
from reef.records import many
from reef.records.parts import Place, Prepared, prepare, put, put_all
from reef.records.redact import kept, kept_json, redact

State = Literal["complete", "partial", "failed", "cancelled", "interrupted"]
Source = Literal["person", "program", "agent", "step"]

LARGE = 256 * 1024
"""Bodies over this many bytes are prepared outside the writer's thread."""

PREVIEW_CHARS = 200
INTERRUPTED = "reef ended before the reply did"


@dataclass(frozen=True)
class Body:
    """A body as it is stored: redacted, cut and hashed."""

    prepared: Prepared
    received_bytes: int
    redactions: int


@dataclass
class OpenRecord:
    """A call that has arrived. `request` is the body as received, or already a `Body`; None when it follows later."""

    receipt: str
    scenario: str
    dialect: str
    route: str
    request: bytes | Body | None
    model: str | None = None
    streaming: bool = False
    source: Source = "program"
    session: str | None = None
    adapter: str | None = None
    version: int | None = None
    engine: str | None = None
    load_id: str | None = None
    side_call: bool = False
    preview: str | None = None
    """First line of the last user message."""
    tags: dict[str, str] | None = None
    follows: str | None = None
    """The server's own name of the reply that the request goes on from, instead of repeating the conversation."""
    redact: bool = True
    request_bytes: int | None = None
    """Only for `request=None`: the size of what will follow."""
    started_at: str = field(default_factory=utc_now)


@dataclass
class Settlement:
    """How a call ended. `response` is one body (a stream is folded); `raw` the event stream when it is kept."""

    state: State
    response: bytes | Body | None = None
    raw: bytes | Body | None = None
    status: int | None = None
    error: str | None = None
    first_byte_ms: float | None = None
    duration_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    expected_tokens: int | None = None
    """What the request's text should have cost, by an estimate that knows no tokenizer; beside `prompt_tokens`."""
    prompt_cut: bool = False
    """Whether the server has likely dropped the front of the prompt."""
    finish_reason: str | None = None
    answer_preview: str | None = None
    reply_name: str | None = None
    """The server's own name of the reply, where later requests may name it."""
    model: str | None = None
    """The model that the reply names; None keeps the request's."""
    load_id: str | None = None
    attempts: list[dict[str, Any]] | None = None
    notes: dict[str, Any] | None = None
    trainable: bool = True
    """False when the gateway knows a reason against it; only complete, unredacted replies count anyhow."""
    redact: bool = True


_NO_END = Settlement("interrupted")
_SETTLE = """UPDATE records SET state = ?, response_part = ?, response_chain = ?, raw_part = ?, raw_chain = ?,
 response_bytes = ?, response_hash = ?,
 status = ?, error = ?, first_byte_ms = ?, duration_ms = ?, prompt_tokens = ?, completion_tokens = ?, cached_tokens = ?,
 expected_tokens = ?, prompt_cut = ?, finish_reason = ?, redactions = redactions + ?, trainable = ?,
 attempts_json = ?, notes_json = ?, answer_preview = ?, reply_name = ?,
 model = coalesce(?, model), load_id = coalesce(?, load_id) WHERE sequence = ?"""
_RECORD = (
    "id", "scenario", "session", "dialect", "route", "model", "streaming", "state", "source", "adapter", "version",
    "engine", "load_id", "request_part", "request_chain", "request_bytes", "request_hash", "started_at", "redactions",
    "tags_json", "side_call", "preview", "follows", "response_part", "response_chain", "raw_part", "raw_chain",
    "response_bytes", "response_hash", "status", "error", "first_byte_ms", "duration_ms", "prompt_tokens",
    "completion_tokens", "cached_tokens", "expected_tokens", "prompt_cut", "finish_reason", "trainable",
    "attempts_json", "notes_json", "answer_preview", "reply_name",
)  # fmt: skip
_EVENT = ("at", "kind", "scenario", "ids_json", "state")
# Asking first costs less than half of what RETURNING does.
_FIND = "SELECT sequence, scenario, streaming, state FROM records WHERE id = ?"
_ATTACH = """UPDATE records SET request_part = ?, request_chain = ?, request_bytes = ?, request_hash = ?,
 redactions = redactions + ? WHERE id = ?"""
_FLUSH = "INSERT INTO progress (record, body) SELECT sequence, ? FROM records WHERE id = ? AND state = 'open'"
_LAST_FLUSH = """SELECT progress.sequence, progress.body FROM progress
 JOIN records ON records.sequence = progress.record WHERE records.id = ? ORDER BY progress.sequence DESC LIMIT 1"""


def make_body(body: bytes, redacting: bool = True) -> Body:
    """Redact, cut and hash a body. Pure; large ones take a while."""
    stored, count = redact(body, redacting)
    return Body(prepare(stored), len(body), count)


def open_record(conn: sqlite3.Connection, call: OpenRecord) -> None:
    """Store the row of a call that has arrived, state `open`."""
    store_records(conn, [(call, None)])


def store_record(conn: sqlite3.Connection, call: OpenRecord, end: Settlement) -> None:
    """`open_record` and `settle_record` in one row, for a call that was over before its row was written."""
    store_records(conn, [(call, end)])


def store_records(conn: sqlite3.Connection, calls: Iterable[tuple[OpenRecord, Settlement | None]]) -> None:
    """Store the rows of several calls, each with its end or still open. One event each, about what it is by now."""
    bodies: list[Body | None] = []
    made = []
    for call, end in calls:
        request = make_body(call.request, call.redact) if isinstance(call.request, bytes) else call.request
        reply, raw = _reply_bodies(end) if end is not None else (None, None)
        bodies += request, reply, raw
        made.append((call, end))
    places = iter(put_all(conn, [None if body is None else body.prepared for body in bodies]))
    found = iter(bodies)
    rows = [
        _record(call, end, (next(found), next(found), next(found)), (next(places), next(places), next(places)))
        for call, end in made
    ]
    many.insert(conn, "records", _RECORD, rows)
    now = utc_now()
    told = [
        (call.started_at, events.RECORD_OPENED, call.scenario, _ids(call.receipt), "open")
        if end is None
        else (now, events.RECORD_SETTLED, call.scenario, _ids(call.receipt), end.state)
        for call, end in made
    ]
    many.insert(conn, "events", _EVENT, told)


def _record(
    call: OpenRecord,
    end: Settlement | None,
    bodies: tuple[Body | None, Body | None, Body | None],
    places: tuple[Place, Place, Place],
) -> tuple[Any, ...]:
    """The row of a call, as `_RECORD` names it. `bodies` and `places`: those of the request, reply and stream."""
    request, reply, raw = bodies
    redacted = (reply.redactions if reply else 0) + (raw.redactions if raw else 0)
    state = "open" if end is None else end.state
    if end is None:
        end = _NO_END
    return (
        to_blob(call.receipt), call.scenario, kept(call.session), call.dialect, kept(call.route),
        kept(end.model or call.model), call.streaming, state, call.source, kept(call.adapter), call.version,
        call.engine, kept(end.load_id or call.load_id), *places[0],
        request.received_bytes if request else call.request_bytes or 0, request.prepared.hash if request else None,
        call.started_at, redacted + (request.redactions if request else 0), kept_json(call.tags), call.side_call,
        _shown(call.preview, call.redact), kept(call.follows), *places[1], *places[2],
        reply.received_bytes if reply else None, reply.prepared.hash if reply else None, end.status,
        kept(end.error), end.first_byte_ms, end.duration_ms, kept(end.prompt_tokens),
        kept(end.completion_tokens), kept(end.cached_tokens), end.expected_tokens, end.prompt_cut,
        kept(end.finish_reason), state == "complete" and end.trainable and not redacted,
        kept_json(end.attempts), kept_json(end.notes), _shown(end.answer_preview, end.redact),
        kept(end.reply_name),
    )  # fmt: skip


def attach_request(conn: sqlite3.Connection, receipt: str, body: Body) -> None:
    """Add the request's body to a row that was opened without it."""
    place = put(conn, body.prepared)
    conn.execute(_ATTACH, (*place, body.received_bytes, body.prepared.hash, body.redactions, to_blob(receipt)))


def flush_progress(conn: sqlite3.Connection, receipt: str, text: bytes) -> None:
    """Append what came since the last flush of a running stream: the answer's text, as UTF-8.

    Credentials are cut out here as well, also one that came in two flushes.
    """
    last = conn.execute(_LAST_FLUSH, (to_blob(receipt),)).fetchone()
    if last is not None:
        joined, count = redact(last[1] + text)
        if count:
            conn.execute("UPDATE progress SET body = ? WHERE sequence = ?", (joined, last[0]))
            return
    conn.execute(_FLUSH, (redact(text)[0], to_blob(receipt)))


def settle_record(conn: sqlite3.Connection, receipt: str, end: Settlement) -> None:
    """Store how a call ended and drop its progress. A row settles once: later calls change nothing.

    Raises NotFound when the call was never opened.
    """
    settle_records(conn, [(receipt, end)])


def settle_records(conn: sqlite3.Connection, ends: Iterable[tuple[str, Settlement]]) -> None:
    """`settle_record` for several calls."""
    found: dict[str, tuple[int, str, Settlement]] = {}
    bodies: list[Body | None] = []
    ended = []
    for receipt, end in ends:
        row = conn.execute(_FIND, (to_blob(receipt),)).fetchone()
        if row is None:
            raise NotFound(f"there is no record {receipt}", "reef records list")
        sequence, scenario, streaming, state = row
        if state == "open" and receipt not in found:
            found[receipt] = sequence, scenario, end
            bodies += _reply_bodies(end)
            ended += [(sequence,)] if streaming else []
    places = put_all(conn, [None if body is None else body.prepared for body in bodies])
    settled = [
        _settled(sequence, end, bodies[2 * number : 2 * number + 2], places[2 * number : 2 * number + 2])
        for number, (sequence, _, end) in enumerate(found.values())
    ]
    conn.executemany(_SETTLE, settled)
    conn.executemany("DELETE FROM progress WHERE record = ?", ended)
    now = utc_now()
    told = [
        (now, events.RECORD_SETTLED, scenario, _ids(receipt), end.state)
        for receipt, (_, scenario, end) in found.items()
    ]
    many.insert(conn, "events", _EVENT, told)


def _settled(sequence: int, end: Settlement, bodies: list[Body | None], places: list[Place]) -> tuple[Any, ...]:
    """What `_SETTLE` takes. `bodies` and `places`: those of the reply and its stream."""
    body, raw = bodies
    # The stream holds the same reply a second time.
    redactions = max(body.redactions if body else 0, raw.redactions if raw else 0)
    return (
        end.state, *places[0], *places[1],
        body.received_bytes if body else None, body.prepared.hash if body else None, end.status, kept(end.error),
        end.first_byte_ms, end.duration_ms, kept(end.prompt_tokens), kept(end.completion_tokens),
        kept(end.cached_tokens), end.expected_tokens, end.prompt_cut, kept(end.finish_reason), redactions,
        end.trainable and end.state == "complete" and not redactions,
        kept_json(end.attempts), kept_json(end.notes), _shown(end.answer_preview, end.redact),
        kept(end.reply_name), kept(end.model), kept(end.load_id), sequence,
    )  # fmt: skip


def mark_interrupted(conn: sqlite3.Connection, fold: Callable[[str, bytes], bytes] | None = None) -> int:
    """Settle the calls that a crash left open and return how many there were; run at start, before serving.

    What was flushed of a stream becomes its response, passed through `fold(dialect, text)` when that is given.
    """
    rows = conn.execute("SELECT sequence, id, dialect FROM records WHERE state = 'open'").fetchall()
    for sequence, blob, dialect in rows:
        pieces = conn.execute("SELECT body FROM progress WHERE record = ? ORDER BY sequence", (sequence,)).fetchall()
        text = b"".join(bytes(piece[0]) for piece in pieces)
        response = (fold(dialect, text) if fold else text) if text else None
        shown = text[: PREVIEW_CHARS * 4].decode("utf-8", "replace").strip().partition("\n")[0]
        settle_record(
            conn,
            from_blob(blob),
            Settlement("interrupted", response=response, error=INTERRUPTED, answer_preview=shown or None),
        )
    return len(rows)


def _shown(preview: str | None, shaped: bool) -> str | None:
    # Cut behind the filter: half of a credential has no shape any more.
    return clean(preview, shaped)[:PREVIEW_CHARS] if preview else None


def _reply_bodies(end: Settlement) -> tuple[Body | None, Body | None]:
    """The reply and its stream as they are stored.

    No stream is when its events hold in pieces what was cut out of the whole reply.
    """
    body = make_body(end.response, end.redact) if isinstance(end.response, bytes) else end.response
    raw = make_body(end.raw, end.redact) if isinstance(end.raw, bytes) else end.raw
    return body, None if raw is not None and body is not None and raw.redactions < body.redactions else raw


def _ids(receipt: str) -> str:
    return f'{{"record":"{receipt}"}}'
