"""Reading envelopes of records: the request and the reply are cut out of the bytes that came, not written anew.

What an envelope does not say of a call (its model, its tokens, its first line) is read from its bodies, as of a call
that reef serves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import Forbidden, InvalidInput, ReefError
from reef.gateway import scan
from reef.gateway.dialect import ReplyFacts, RequestFacts
from reef.gateway.dialects import DIALECT_OF
from reef.ids import stamp, utc_now
from reef.records import envelopes
from reef.records.calls import Body, OpenRecord, Settlement, make_body
from reef.records.importing import IMPORTED, ImportedCall, ImportedReport, Item, id_of

BATCH_MAX = 1000
UNKNOWN = "unknown"
"""The dialect of a payload that is none of the model API's."""
_STATES = frozenset({"complete", "partial", "failed", "cancelled", "interrupted"})
_SOURCES = frozenset({"person", "program", "agent", "step"})
_ENVELOPE = frozenset({"agent_record_id", "request_type", "payload"})
_EXCHANGE = frozenset({"request", "response"})
_NO_REPLY = "imported without a reply"

Json = dict[str, Any]


def spans_of_batch(body: bytes) -> list[scan.Span]:
    """The places of the envelopes of `{"records": [...]}`. Raises InvalidInput."""
    try:
        members = scan.members(body)
        if set(members) != {"records"}:
            raise InvalidInput("the body must be an object with 'records' and nothing else")
        spans = list(scan.elements(body, members["records"]))
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from None
    if not 1 <= len(spans) <= BATCH_MAX:
        raise InvalidInput(f"a batch has 1 to {BATCH_MAX} records, this one has {len(spans)}")
    return spans


def read_batch(body: bytes, person: bool, redact: bool) -> Iterator[Item]:
    """Every item of a batch. Raises InvalidInput or Forbidden, with the item's place in front of the message."""
    for place, span in enumerate(spans_of_batch(body)):
        try:
            yield read_envelope(body[span[0] : span[1]], person, redact)
        except ReefError as error:
            raise type(error)(f"records[{place}]: {error.message}", error.hint) from None


def read_envelope(envelope: bytes, person: bool, redact: bool) -> Item:
    """The record or report in an envelope, ready to be stored.

    `person`: whether the person sends it, who alone may bring reports as a person's. Raises InvalidInput, Forbidden.
    """
    _check_json(envelope)
    try:
        members = scan.members(envelope)
        if set(members) != _ENVELOPE:
            raise InvalidInput("a record has 'agent_record_id', 'request_type' and 'payload', and nothing else")
        sent_id = scan.value(envelope, members["agent_record_id"])
        kind = scan.value(envelope, members["request_type"])
        payload = envelope[slice(*members["payload"])]
        if payload[:1] != b"{":
            raise InvalidInput("'payload' must be an object")
        if kind == "inference":
            return _Call(sent_id, payload, redact).read()
        if kind == "report":
            return _report(sent_id, _exact(payload), person)
    except ValueError as error:
        raise InvalidInput(f"the record is not JSON: {error}") from None
    raise InvalidInput("'request_type' must be 'inference' or 'report'")


class _Call:
    """One call on its way out of its payload."""

    def __init__(self, sent_id: object, payload: bytes, redact: bool) -> None:
        self.sent_id = sent_id
        self.redact = redact
        self.given, self.bodies = _take_apart(payload)
        self.request_facts: RequestFacts | None = None
        self.reply_facts: ReplyFacts | None = None

    def read(self) -> ImportedCall:
        receipt, given = id_of(self.sent_id), self.given
        request, response = self.bodies.get("request"), self.bodies.get("response")
        dialect = given.get("dialect") or _dialect(request or b"{}", response)
        self._read_bodies(dialect, request, response)
        gone = {
            name: (int(found["bytes"]), bytes.fromhex(found["hash"]))
            for name in _EXCHANGE
            if isinstance(found := given.get(name), dict) and "hash" in found
        }
        found_request, found_response = self._body("request"), self._body("response")
        stored = {"request": found_request, "response": found_response}
        return ImportedCall(
            sent_id=str(self.sent_id),
            call=self._opened(receipt, dialect, found_request),
            end=self._settled(dialect, found_response, "response" in gone),
            origin=_origin(given.get("origin")),
            redactions=given.get("redactions") or 0,
            gone=gone,
            pruned_at=_moment(given, "pruned_at") or (utc_now() if gone else None),
            sizes={
                name: size
                for name, body in stored.items()
                if body is not None and (size := given.get(f"{name}_bytes")) is not None
            },
            cwd=given.get("cwd"),
            title=given.get("title"),
        )

    def _read_bodies(self, dialect: str, request: bytes | None, response: bytes | None) -> None:
        """What the bodies say of themselves; a body that is none of its dialect says nothing."""
        reader = DIALECT_OF.get(dialect)
        if reader is None:
            return
        if request is not None:
            try:
                self.request_facts = reader.read_request(request)
            except InvalidInput:
                self.request_facts = None
        if response is not None:
            self.reply_facts = reader.read_reply(response)

    def _opened(self, receipt: str, dialect: str, request: Body | None) -> OpenRecord:
        given, facts = self.given, self.request_facts
        started_at = _moment(given, "started_at")
        fields: Json = {} if started_at is None else {"started_at": started_at}
        found_route = DIALECT_OF[dialect].route if dialect in DIALECT_OF else ""
        return OpenRecord(
            receipt=receipt,
            scenario="",
            dialect=dialect,
            route=given.get("route") or f"/v1{found_route}",
            request=request,
            model=self._said("model", facts.model if facts else None),
            streaming=bool(given.get("streaming", facts.stream if facts else False)),
            source=_one_of(given, "source", _SOURCES, "program"),
            session=self._said("session", facts.session if facts else None),
            adapter=given.get("adapter"),
            engine=given.get("engine"),
            load_id=given.get("load_id"),
            side_call=bool(given.get("side_call")),
            preview=self._said("preview", facts.preview or None if facts else None),
            tags=given.get("tags"),
            follows=self._said("follows", facts.follows if facts else None),
            redact=self.redact,
            **fields,
        )

    def _settled(self, dialect: str, response: Body | None, pruned: bool) -> Settlement:
        given, facts = self.given, self.reply_facts or ReplyFacts()
        has_reply = response is not None or pruned
        state = _one_of(given, "state", _STATES, "complete" if has_reply and not facts.error else "partial")
        notes = dict(given.get("notes") or {})
        came: Json = {"version": given["version"]} if given.get("version") is not None else {}
        if id_of(self.sent_id) != self.sent_id:
            came["id"] = self.sent_id
        if came:
            notes["imported"] = came
        reader = DIALECT_OF.get(dialect)
        error = self._said("error", facts.error if has_reply else _NO_REPLY)
        return Settlement(
            state=state,
            response=response,
            raw=self._body("raw"),
            status=given.get("status"),
            error=error,
            first_byte_ms=given.get("first_byte_ms"),
            duration_ms=given.get("duration_ms"),
            prompt_tokens=self._said("prompt_tokens", facts.prompt_tokens),
            completion_tokens=self._said("completion_tokens", facts.completion_tokens),
            cached_tokens=self._said("cached_tokens", facts.cached_tokens),
            expected_tokens=given.get("expected_tokens"),
            prompt_cut=bool(given.get("prompt_cut")),
            finish_reason=self._said("finish_reason", facts.finish_reason),
            answer_preview=self._said("answer_preview", facts.preview or None),
            reply_name=self._said("reply_name", facts.name),
            attempts=given.get("attempts"),
            notes=notes or None,
            trainable=bool(given.get("trainable", reader is not None and reader.trainable and not facts.bad_arguments)),
            redact=self.redact,
        )

    def _said(self, name: str, found: Any) -> Any:
        """What the envelope says, be it null; else what the bodies say."""
        return self.given.get(name, found)

    def _body(self, name: str) -> Body | None:
        body = self.bodies.get(name)
        return None if body is None else make_body(body, self.redact)


def _take_apart(payload: bytes) -> tuple[Json, dict[str, bytes | None]]:
    """What the payload says of the call besides its bodies, and those by name."""
    given: Json = {}
    members = list(scan.placed(payload))
    places = {key: span for key, _, span in members}
    if "reef" in places and payload[places["reef"][0]] == ord("{"):
        found = _exact(payload[slice(*places["reef"])])
        given = found if found.get("format") == envelopes.FORMAT else {}
    own = [b'"response"', b'"reef"'] if given else [b'"response"']
    response = payload[slice(*places["response"])] if "response" in places else None
    bodies: dict[str, bytes | None] = {"request": _without(payload, members, own), "response": response}
    if not given and set(places) <= _EXCHANGE and "request" in places:
        bodies["request"] = payload[slice(*places["request"])]
    for name in envelopes.BODIES:
        if name in given:
            bodies[name] = None if given[name] is None else envelopes.body_inside(given[name])
    if given:
        _check_facts(given, {**envelopes.CALL_FACTS, "request_bytes": int, "response_bytes": int})
    return given, bodies


def _without(payload: bytes, members: list[tuple[str, int, scan.Span]], names: list[bytes]) -> bytes:
    """`payload` without the members of these names, every other byte as it was."""
    kept: list[bytes] = []
    place = 0
    anything_before = False
    for index, (_, begin, span) in enumerate(members):
        if not any(payload.startswith(name, begin) for name in names):
            anything_before = True
            continue
        if anything_before:
            start, end = payload.rindex(b",", 0, begin), span[1]
        else:
            start, end = begin, members[index + 1][1] if index + 1 < len(members) else span[1]
        kept.append(payload[place:start])
        place = end
    return b"".join((*kept, payload[place:]))


def _report(sent_id: object, payload: Json, person: bool) -> ImportedReport:
    given = payload.pop("reef", None)
    given = given if isinstance(given, dict) and given.get("format") == envelopes.FORMAT else {}
    _check_facts(given, envelopes.REPORT_FACTS)
    source = _one_of(given, "source", frozenset({"person", "program", "agent"}), "program")
    revisions = given.get("revisions") or []
    if not all(isinstance(one, dict) and {"number", "source", "at"} <= one.keys() for one in revisions):
        raise InvalidInput("'revisions' must be objects with 'number', 'source' and 'at'")
    if not person and "person" in (source, *(one["source"] for one in revisions)):
        raise Forbidden("only the person brings reports as a person's", "reef import FILE")
    references = payload.get("references")
    body = payload | {"agent_record_id": id_of(sent_id)}
    if isinstance(references, list):
        body["references"] = [id_of(one) for one in references]
    return ImportedReport(
        sent_id=str(sent_id),
        body=body,
        source=source,
        session=given.get("session"),
        created_at=_moment(given, "created_at"),
        withdrawn_at=_moment(given, "withdrawn_at"),
        revised_at=_moment(given, "revised_at"),
        revisions=revisions,
        first={name: revisions[0].get(name) for name in ("score", "feedback", "metadata")} if revisions else {},
    )


def _dialect(request: bytes, response: bytes | None) -> str:
    """The dialect of a call that does not say it: that of its reply, else of its request."""
    asked = scan.members(request) if request[:1] == b"{" else {}
    reply = scan.members(response) if response is not None and response[:1] == b"{" else {}
    if "choices" in reply:
        return CHAT
    if "output" in reply or "input" in asked:
        return RESPONSES
    if "messages" not in asked:
        return UNKNOWN
    return MESSAGES if "content" in reply or "stop_reason" in reply or (not reply and "system" in asked) else CHAT


def _origin(given: str | None) -> str:
    return (
        given
        if given is not None and given.startswith(envelopes.TRANSCRIPT) and given[len(envelopes.TRANSCRIPT) :]
        else IMPORTED
    )


def _one_of(given: Json, name: str, words: frozenset[str], default: str) -> Any:
    found = given.get(name) or default
    if found not in words:
        raise InvalidInput(f"{name!r} must be one of {', '.join(sorted(words))}")
    return found


def _moment(given: Json, name: str) -> str | None:
    """A time in the one form in which times are stored, and compared as texts."""
    text = given.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        # At either end of the calendar an offset leads out of it.
        stored = stamp(found) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        stored = None
    if stored is None:
        raise InvalidInput(f"{name!r} is not a time as in RFC 3339")
    return stored


def _check_facts(given: Json, types: dict[str, Any]) -> None:
    for name, kind in types.items():
        value = given.get(name)
        wrong = value is not None and not isinstance(value, kind)
        if wrong or (isinstance(value, bool) and kind is not bool):
            raise InvalidInput(f"{name!r} of the payload's 'reef' is not of its type")


def _exact(text: bytes) -> Json:
    """The object that `text` is, whole numbers of any length as they are. Raises ValueError."""
    try:
        found = json.loads(text.decode())
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _check_json(envelope: bytes) -> None:
    """Raises InvalidInput when an envelope is no JSON; of a very large one its structure is looked at alone."""
    if len(envelope) > scan.SCAN_ABOVE:
        return
    try:
        envelopes.check_json(envelope)
    except ValueError as error:
        raise InvalidInput(f"the record is not JSON: {error}") from None
