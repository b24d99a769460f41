"""Events that say what they are, found in every way in which they may say it, and marked without losing a byte."""

from __future__ import annotations

import json

import pytest

from reef.gateway.named import ends, with_receipt
from reef.gateway.sse import EndWatch

NAMES = frozenset({b"message_stop"})
STOP = b'data: {"type":"message_stop"}\n\n'


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (b"event: message_stop\n", True),
        (b"event:message_stop\r\n", True),
        (b"event: message_st", None),
        (b"event: ping\n", False),
        (b"id: 3\nretry: 5\n", None),
        (b'event: message\ndata: {"type":"message_stop"', True),
        (b'data:{ "type" : "message_stop"', True),
        (b'data: {"type":"message_sto', None),
        (b'data: {"type":"ping"', False),
        (b'data: {"x":1,"type":"message_stop"}', None),
        (b'data: {"x":1,"type":"message_stop"}\n\n', True),
        (b'data: {"x":"message_stop","type":"ping"}\n\n', False),
        (b'data: {"x":"message_stop"\n\n', False),
        (b'data: {"delta":{"type":"message_stop"}}\n\n', False),
        (b'data: {\ndata:  "type": "message_stop"\ndata: }\n\n', True),
        (b"id: 1\n\n", False),
        (b"data: [DONE]\n\n", False),
    ],
)
def test_an_event_is_the_end_when_its_name_or_type_says_so(event: bytes, found: bool | None) -> None:
    assert ends(event, NAMES) is found


def test_an_event_whose_type_comes_after_thousands_of_bytes_is_found() -> None:
    long = b'data: {"x":"%s","type":"message_stop"}\n\n' % (b"y" * 20_000)
    other = b'data: {"x":"%s","type":"ping"}\n\n' % (b"y" * 20_000)
    watch = EndWatch(lambda event: ends(event, NAMES), tuple(NAMES), whole=True)
    whole = other + long + b"data: [DONE]\n\n"
    passed = ending = b""
    for place in range(0, len(whole), 700):
        out, end = watch.feed(whole[place : place + 700])
        passed, ending = passed + out, ending + end
    assert (passed, ending) == (other, long + b"data: [DONE]\n\n")


def test_an_event_of_megabytes_that_does_not_say_what_it_is_is_not_held_for_ever() -> None:
    watch = EndWatch(lambda event: ends(event, NAMES), tuple(NAMES), whole=True)
    passed = 0
    watch.feed(b'data: {"x":"')
    for _ in range(40):
        passed += len(watch.feed(b"y" * 65536)[0])
    assert passed > 1_000_000


def test_the_ending_event_is_held_until_it_is_whole() -> None:
    watch = EndWatch(lambda event: ends(event, NAMES), tuple(NAMES), whole=True)
    assert watch.feed(b"event: ping\ndata: {}\n\nevent: message_stop\nda") == (b"event: ping\ndata: {}\n\n", b"")
    assert watch.feed(b'ta: {"type":"message_stop"}\n') == (b"", b"")
    assert watch.feed(b"\ndata: after") == (b"", b'event: message_stop\ndata: {"type":"message_stop"}\n\ndata: after')
    assert watch.feed(b"more") == (b"", b"more")


@pytest.mark.parametrize(
    ("event", "marked"),
    [
        (STOP, b'data: {"type":"message_stop","reef":{"agent_record_id":"r"}}\n\n'),
        (
            b'data: {"type":"message_stop" }  \r\n\r\n',
            b'data: {"type":"message_stop" ,"reef":{"agent_record_id":"r"}}  \r\n\r\n',
        ),
        (b"data: {}\n\n", b'data: {"reef":{"agent_record_id":"r"}}\n\n'),
        (
            b'data: {"a":"}"}\n: }\n\ndata: {}\n\n',
            b'data: {"a":"}","reef":{"agent_record_id":"r"}}\n: }\n\ndata: {}\n\n',
        ),
        (b'data: {\ndata: "a":1\ndata: }\n\n', b'data: {\ndata: "a":1\ndata: ,"reef":{"agent_record_id":"r"}}\n\n'),
        (b"data: [1]\n\n", b"data: [1]\n\n"),
        (b"event: message_stop\n\n", b"event: message_stop\n\n"),
    ],
)
def test_the_receipt_goes_into_the_object_of_the_first_event(event: bytes, marked: bytes) -> None:
    assert with_receipt(event, "r") == marked
    lines = [line[5:] for line in marked.split(b"\n\n")[0].splitlines() if line.startswith(b"data:")]
    if b"reef" in marked:
        assert json.loads(b"\n".join(lines))["reef"] == {"agent_record_id": "r"}
