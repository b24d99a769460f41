"""Cutting bodies: always exact, the same beginning cut the same way, and never slow."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef.records.spans import LONG_STRING, PIECE, WHOLE_BELOW, Layout, Span, split


def flat(layout: Layout) -> list[Span]:
    spans: list[Span] = []
    for item in layout:
        spans += item if isinstance(item, list) else [item]
    return spans


def message(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


def body_of(messages: list[dict[str, str]], tools: int = 12) -> bytes:
    made = [
        {"type": "function", "function": {"name": f"tool{n}", "description": "what it does " * 60}}
        for n in range(tools)
    ]
    return json.dumps({"model": "m", "messages": messages, "tools": made, "stream": True}).encode()


def test_a_short_body_stays_whole() -> None:
    body = body_of([message("hi")], tools=0)
    assert len(body) < WHOLE_BELOW
    assert split(body)[0] is body


def test_messages_and_tools_are_cut_one_by_one_and_the_rest_is_glue() -> None:
    body = body_of([message("a" * 600), message("b" * 600), message("c" * 600)])
    layout = split(body)
    assert [type(item) for item in layout] == [memoryview, list, memoryview, list, memoryview]
    assert [len(item) for item in layout if isinstance(item, list)] == [3, 12]
    assert b"".join(flat(layout)) == body


def test_a_longer_conversation_is_cut_like_the_shorter_one_that_it_repeats() -> None:
    talk = [message(f"{n} " * 400, "user" if n % 2 else "assistant") for n in range(40)]
    shorter, longer = split(body_of(talk)), split(body_of([*talk, message("and now?" * 80)]))
    assert isinstance(shorter[1], list) and isinstance(longer[1], list)
    assert longer[1][: len(shorter[1])] == shorter[1]
    assert longer[3] == shorter[3]


def test_a_small_array_stays_where_it_is() -> None:
    body = json.dumps({f"k{n}": [{"a": n}] for n in range(3000)}).encode()
    assert len(flat(split(body))) == 1


def test_small_elements_share_a_span() -> None:
    body = json.dumps({"messages": [message("x") for _ in range(1000)]}).encode()
    layout = split(body)
    assert isinstance(layout[1], list)
    assert len(layout[1]) < 80
    assert b"".join(flat(layout)) == body


def test_an_image_is_a_span_of_its_own_wherever_it_stands() -> None:
    image = "iVBORw0KGgo" * 9000
    first = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}]}
    for body in (json.dumps({"messages": [first]}), json.dumps({"messages": [message("hi"), first, message("bye")]})):
        spans = [bytes(span) for span in flat(split(body.encode()))]
        assert b"".join(spans) == body.encode()
        assert f"data:image/png;base64,{image}".encode() in spans


def test_no_span_is_longer_than_a_piece() -> None:
    body = json.dumps({"prompt": "z" * (3 * PIECE)}).encode()
    spans = flat(split(body))
    assert max(len(span) for span in spans) <= PIECE
    assert b"".join(spans) == body


def test_a_quote_behind_backslashes_does_not_end_a_string() -> None:
    text = 'say \\"no\\" [ { ' * 2000 + "\\\\"
    body = json.dumps({"messages": [message(text), message("next" * 400)]}).encode()
    spans = [bytes(span) for span in flat(split(body))]
    assert b"".join(spans) == body
    assert json.dumps(text)[1:-1].encode() in spans


PIECES = [
    b'"',
    b"\\",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"a" * 600,
    b"b" * LONG_STRING,
    b'\\"',
    b"\xff\xfe",
    b"\n",
    b'"k":',
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=10, max_size=60))
def test_whatever_the_bytes_are_the_spans_joined_are_the_body(pieces: list[bytes]) -> None:
    body = b"".join(pieces) + b"c" * WHOLE_BELOW
    spans = flat(split(body))
    assert b"".join(spans) == body
    assert all(len(span) for span in spans)


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(st.none() | st.text(max_size=30), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_json_value_survives(value: object) -> None:
    body = json.dumps({"messages": [value, "filler" * 2000], "other": value}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    assert b"".join(flat(split(body))) == body


@pytest.mark.parametrize(
    "unit",
    [b"[],", b'"",', b"[1,2,", b'{"a":', b'\\"', b"\\", b'"', b"x", b'{"a":"b"},', b']}{"m":[{}'],
    ids=["arrays", "strings", "numbers", "deep", "escaped", "backslashes", "quotes", "plain", "objects", "lines"],
)
def test_a_hostile_body_takes_seconds_at_most_and_few_spans(unit: bytes) -> None:
    body = b'{"messages":[' + unit * (16 * 1024 * 1024 // len(unit))
    started = time.process_time()
    spans = flat(split(body))
    assert time.process_time() - started < 10
    assert len(spans) < 6000
    assert b"".join(spans) == body
