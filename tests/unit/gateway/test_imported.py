"""Envelopes of records: bodies are cut out of the bytes that came, and what is known of a call is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.errors import Forbidden, InvalidInput
from reef.gateway.imported import read_batch, read_envelope
from reef.records import envelopes
from reef.records.calls import Body
from reef.records.importing import ImportedCall, ImportedReport, id_of
from reef.records.parts import Prepared

RECEIPT = "0123456789abcdef0123456789abcdef"
REPLY = (
    b'{"choices":[{"message":{"role":"assistant","content":"4"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}'
)
STRANGE = [
    b'{"messages":[{"role":"user","content":"hi"}],"n":1}',
    b'{ "messages" : [ ] , "n" : 1.0000000000000000000000000000000001 }',
    b'{"messages":[],"n":' + b"9" * 6000 + b"}",
    b'{"messages":[],"n":NaN,"m":-Infinity,"e":1e999}',
    b'{"messages":[],"a":1,"a":2,"A":3}',
    b'{"messages":[{"role":"user","content":"half \\ud83d of a pair"}]}',
    b'{"messages":[],"response":{"of":"the request itself"},"reef":7}',
    b'{"messages":[],"\\u0072eef":1,"respons\\u0065":2}',
    b'{\n  "messages": []\n}',
    b'{"messages":[]}\n',
    b"{}",
    b"",
    b"no json at all \xff\xfe",
    b"[1,2,3]",
]


def call(envelope: bytes) -> ImportedCall:
    found = read_envelope(envelope, person=True, redact=False)
    assert isinstance(found, ImportedCall)
    return found


def plain(body: Any) -> bytes | None:
    """The bytes of a body that is ready to be stored."""
    if body is None:
        return None
    assert isinstance(body, Body)
    prepared: Prepared = body.prepared
    if prepared.whole is not None:
        return prepared.whole
    return b"".join(bytes(part) for _, part in prepared.parts())


def foreign(payload: bytes, id: str = RECEIPT) -> bytes:
    return b'{"agent_record_id":"%s","request_type":"inference","payload":%s}' % (id.encode(), payload)


@pytest.mark.parametrize("body", STRANGE, ids=range(len(STRANGE)))
def test_a_body_is_had_back_byte_for_byte_from_an_envelope_of_one_line(body: bytes) -> None:
    envelope = envelopes.write_call(RECEIPT, {}, {"request": body, "response": body, "raw": body})
    assert b"\n" not in envelope
    json.JSONDecoder(parse_int=float).decode(envelope.decode())
    found = call(envelope)
    assert (plain(found.call.request), plain(found.end.response), plain(found.end.raw)) == (body, body, body)


def test_a_plain_body_stands_in_the_line_as_json_that_can_be_looked_into() -> None:
    envelope = envelopes.write_call(RECEIPT, {"model": "m"}, {"request": STRANGE[0], "response": REPLY})
    payload = json.loads(envelope)["payload"]
    assert payload["messages"][0]["content"] == "hi"
    assert payload["response"] == json.loads(REPLY)
    assert payload["reef"] == {"format": envelopes.FORMAT, "model": "m"}


@pytest.mark.parametrize(
    ("payload", "request_body"),
    [
        (b'{"messages":[1],"model":"m","response":%s}', b'{"messages":[1],"model":"m"}'),
        (b'{"messages":[1], "response" : %s , "model":"m"}', b'{"messages":[1] , "model":"m"}'),
        (b'{"response":%s,"messages":[1]}', b'{"messages":[1]}'),
        (b'{"request":{"messages":[1] },"response":%s}', b'{"messages":[1] }'),
        (b'{"messages":[1],"n":%s}' % (b"1" * 5000), b'{"messages":[1],"n":%s}' % (b"1" * 5000)),
    ],
)
def test_the_request_is_the_payload_without_its_response(payload: bytes, request_body: bytes) -> None:
    found = call(foreign(payload.replace(b"%s", REPLY)))
    assert plain(found.call.request) == request_body
    assert plain(found.end.response) == (REPLY if b"response" in payload else None)


def test_what_an_envelope_does_not_say_is_read_from_the_bodies() -> None:
    asked = b'{"model":"m","messages":[{"role":"user","content":"two and two?"}],"prompt_cache_key":"s1"'
    found = call(foreign(asked + b',"response":' + REPLY + b"}"))
    opened, end = found.call, found.end
    assert (opened.dialect, opened.route, opened.model) == ("chat", "/v1/chat/completions", "m")
    assert (opened.preview, opened.session, opened.source) == ("two and two?", "s1", "program")
    assert (end.state, end.prompt_tokens, end.finish_reason, end.answer_preview) == ("complete", 7, "stop", "4")
    assert opened.version is None


@pytest.mark.parametrize(
    ("payload", "dialect"),
    [
        (b'{"messages":[],"response":{"choices":[]}}', "chat"),
        (b'{"messages":[],"response":{"type":"message","content":[]}}', "messages"),
        (b'{"messages":[],"system":"be brief"}', "messages"),
        (b'{"messages":[]}', "chat"),
        (b'{"input":"hi"}', "responses"),
        (b'{"input":"hi","response":{"output":[]}}', "responses"),
        (b'{"prompt":"hi"}', "unknown"),
    ],
)
def test_the_dialect_is_told_from_the_bodies(payload: bytes, dialect: str) -> None:
    assert call(foreign(payload)).call.dialect == dialect


def test_a_call_without_a_reply_is_not_taken_for_a_complete_one() -> None:
    found = call(foreign(b'{"messages":[]}'))
    assert (found.end.state, found.end.error) == ("partial", "imported without a reply")


def test_what_an_envelope_says_is_believed_also_where_it_is_null() -> None:
    facts = {"model": None, "preview": None, "state": "failed", "error": "gone", "prompt_tokens": None, "version": 3}
    envelope = envelopes.write_call(RECEIPT, facts, {"request": b'{"model":"m","messages":[]}', "response": REPLY})
    found = call(envelope)
    assert (found.call.model, found.call.preview, found.end.prompt_tokens) == (None, None, None)
    assert (found.end.state, found.end.error) == ("failed", "gone")
    assert found.call.version is None
    assert found.end.notes == {"imported": {"version": 3}}


@pytest.mark.parametrize(
    "time", ["yesterday", "2026-11-30T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_a_time_that_is_none_is_refused(time: str) -> None:
    envelope = envelopes.write_call(RECEIPT, {"started_at": time}, {"request": b'{"messages":[]}', "response": REPLY})
    with pytest.raises(InvalidInput, match="'started_at' is not a time"):
        call(envelope)


def test_a_body_that_was_pruned_keeps_its_size_and_hash() -> None:
    gone = {"bytes": 12, "hash": "ab" * 16}
    found = call(envelopes.write_call(RECEIPT, {}, {"request": gone, "response": gone}))
    assert found.gone == {"request": (12, b"\xab" * 16), "response": (12, b"\xab" * 16)}
    assert (found.call.request, found.end.response, found.end.state) == (None, None, "complete")


@pytest.mark.parametrize(
    ("envelope", "says"),
    [
        (b"[]", "not an object"),
        (b'{"agent_record_id":"a","request_type":"inference"}', "nothing else"),
        (b'{"agent_record_id":"a","request_type":"inference","payload":{},"more":1}', "nothing else"),
        (b'{"agent_record_id":"a","request_type":"train","payload":{}}', "'inference' or 'report'"),
        (b'{"agent_record_id":"a","request_type":"inference","payload":[]}', "'payload' must be an object"),
        (b'{"agent_record_id":7,"request_type":"inference","payload":{}}', "agent_record_id must be a text"),
        (b'{"agent_record_id":"a","request_type":"inference","payload":{"a":tru}}', "not JSON"),
        (b'{"agent_record_id":"a","request_type":"inference","payload":{"a":"\xff"}}', "not JSON"),
        (b'{"agent_record_id":"a","request_type":"inference","payload":' + b"[" * 5000 + b"}", "not JSON"),
        (foreign(b'{"reef":{"format":"reef-record/1","streaming":"yes"}}'), "'streaming'"),
        (foreign(b'{"reef":{"format":"reef-record/1","status":true}}'), "'status'"),
        (foreign(b'{"reef":{"format":"reef-record/1","state":"open"}}'), "'state' must be one of"),
        (foreign(b'{"reef":{"format":"reef-record/1","request":{"base64":"%"}}}'), "not JSON"),
    ],
)
def test_a_bad_envelope_is_refused_with_what_is_wrong(envelope: bytes, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_envelope(envelope, person=True, redact=False)
    assert says in caught.value.message


def test_a_bad_record_of_a_batch_is_named_by_its_place() -> None:
    good = foreign(b'{"messages":[]}')
    with pytest.raises(InvalidInput, match=r"records\[2\]: 'payload'"):
        list(read_batch(b'{"records":[%s,%s,%s]}' % (good, good, foreign(b"1")), person=True, redact=False))


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_has_one_to_a_thousand_records(count: int) -> None:
    body = b'{"records":[' + b",".join([b"{}"] * count) + b"]}"
    with pytest.raises(InvalidInput, match=f"this one has {count}"):
        list(read_batch(body, person=True, redact=False))


def test_ids_of_other_places_become_ids_of_this_home_always_the_same() -> None:
    assert id_of(RECEIPT) == RECEIPT
    assert id_of("01234567-89AB-cdef-0123-456789abcdef") == RECEIPT
    assert id_of("turn-1") == id_of("turn-1") != id_of("turn-2")


def test_a_report_of_a_person_is_brought_by_the_person_alone() -> None:
    envelope = envelopes.write_report(RECEIPT, {"score": 1.0, "references": ["turn-1"]}, {"source": "person"})
    found = read_envelope(envelope, person=True, redact=False)
    assert isinstance(found, ImportedReport)
    assert (found.source, found.body["references"]) == ("person", [id_of("turn-1")])
    with pytest.raises(Forbidden):
        read_envelope(envelope, person=False, redact=False)
    plain_report = b'{"agent_record_id":"r","request_type":"report","payload":{"score":1}}'
    other = read_envelope(plain_report, person=True, redact=False)
    assert isinstance(other, ImportedReport)
    assert other.source == "program"
