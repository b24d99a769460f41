"""Parts and chains: stored once, shared beginnings, byte for byte back."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reef.errors import Failed
from reef.records.packing import CODEC, dictionary, pack, pack_short, unpack
from reef.records.parts import get_body, missing, prepare, put, put_all
from reef.records.schema import open_store

# What JSON libraries change, refuse or fold when they read and write it.
AWKWARD = {
    "not a number": b'{"a": NaN, "b": Infinity, "c": -Infinity}',
    "huge numbers": b'{"n": 1234567890123456789012345678901234567890123456789012, "e": 1e400, "z": 1.0, "m": -0}',
    "digits kept": b'{"x": 1.10, "y": 0.1000000000000000055511151231257827, "big": 100000000000000000000000.0}',
    "duplicate keys": b'{"a": 1, "a": 2, "a": {"a": 3, "a": 4}}',
    "odd spacing": b'\n\t {  "a"\r\n:\t[ 1 ,2 ]  }  \n\n',
    "escapes": rb'{"a": "\u0041\/\ud83d\ude00\ud800 \"\\"}',
    "cut off": b'{"messages": [{"role": "user", "content": "and th',
    "no json": b"model=m&prompt=hello",
    "invalid utf-8": b'{"a": "\xff\xfe\x80"}',
    "zero bytes": b"\0\0\0",
    "empty": b"",
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
}


@pytest.fixture
def conn(store: Path) -> Iterator[sqlite3.Connection]:
    connection = open_store(store)
    yield connection
    connection.close()


def kept(conn: sqlite3.Connection, body: bytes) -> bytes | None:
    return get_body(conn, put(conn, prepare(body)))


def size_of(conn: sqlite3.Connection) -> tuple[int, int]:
    """Stored bytes of parts, and nodes."""
    stored = conn.execute("SELECT coalesce(sum(length(body)), 0) FROM parts").fetchone()[0]
    return stored, conn.execute("SELECT count(*) FROM chains").fetchone()[0]


@pytest.mark.parametrize("body", AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_bytes_come_back_exactly_short_and_inside_a_long_conversation(
    conn: sqlite3.Connection, body: bytes
) -> None:
    assert kept(conn, body) == body
    longer = (
        b'{"messages":[{"content":"' + b"long " * 3000 + b'"},' + body + b',{"content":"' + b"more " * 900 + b'"}]}'
    )
    assert kept(conn, longer) == longer


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.integers(0, 60))
def test_any_bytes_come_back(conn: sqlite3.Connection, unit: bytes, times: int) -> None:
    assert kept(conn, unit * times) == unit * times


@pytest.mark.parametrize(
    "body",
    [json.dumps({"messages": [{"content": "x" * 700}] * 40}).encode(), b"no json " * 2000],
    ids=["a chain", "one part"],
)
def test_a_long_body_like_one_before_is_stored_once(conn: sqlite3.Connection, body: bytes) -> None:
    first = put(conn, prepare(body))
    before = size_of(conn)
    assert put(conn, prepare(body)) == first
    assert size_of(conn) == before


def test_a_short_body_is_stored_as_often_as_it_comes_and_takes_no_place_in_the_index(conn: sqlite3.Connection) -> None:
    places = [put(conn, prepare(b'{"messages":[]}')) for _ in range(3)]
    assert len(set(places)) == 3
    assert {get_body(conn, place) for place in places} == {b'{"messages":[]}'}
    assert conn.execute("SELECT count(*), count(hash) FROM parts").fetchone() == (3, 0)


def test_several_bodies_are_put_at_once_each_at_its_own_place(conn: sqlite3.Connection) -> None:
    bodies = [
        b"",
        b"short",
        os.urandom(300),
        b"again and " * 40,
        b"long " * 5000,
        json.dumps([["x" * 99] * 200]).encode(),
    ]
    places = put_all(conn, [None, *(prepare(body) for body in bodies * 5), None])
    assert places[0] == places[-1] == (None, None)
    assert [get_body(conn, place) for place in places[1:-1]] == bodies * 5
    stored = conn.execute("SELECT sum(codec = 'zstd-1'), sum(codec = 'raw') FROM parts WHERE hash IS NULL").fetchone()
    assert stored == (5, 15)


def test_a_turn_costs_what_is_new_in_it(conn: sqlite3.Connection) -> None:
    tools = [{"name": f"t{n}", "description": base64.b64encode(os.urandom(700)).decode()} for n in range(20)]
    messages = [{"role": "system", "content": base64.b64encode(os.urandom(9000)).decode()}]
    sizes = []
    for _ in range(60):
        messages.append({"role": "user", "content": base64.b64encode(os.urandom(1000)).decode()})
        body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
        assert kept(conn, body) == body
        sizes.append(size_of(conn))
    grown = [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(sizes)]
    assert max(stored for stored, _ in grown) < 1500
    assert max(nodes for _, nodes in grown) <= 8


TALK = [{"role": "user", "content": f"{n} " * 300} for n in range(30)]
TOOLS = [{"name": f"t{n}", "description": f"{n} what it does " * 60} for n in range(8)]


@pytest.mark.parametrize(
    ("body", "nodes"),
    [
        ({"model": "m", "messages": TALK, "stream": True, "tools": TOOLS, "n": 1}, 2),
        ({"model": "m", "messages": TALK, "stream": True}, 2),
        ({"model": "m", "system": "s" * 9000, "messages": TALK, "tools": TOOLS, "stream": True}, 3),
        ({"tools": TOOLS[:2], "messages": TALK}, 3),
        ({"system": "s" * 9000, "messages": TALK, "stream": True}, 3),
    ],
    ids=["tools behind", "options behind", "a long text before", "nothing but the end behind", "one piece behind"],
)
def test_a_turn_adds_a_node_for_its_message_and_one_or_two_for_all_around(
    conn: sqlite3.Connection, body: dict[str, object], nodes: int
) -> None:
    for length in (29, 30):
        before = size_of(conn)
        sent = json.dumps(body | {"messages": TALK[:length]}).encode()
        assert kept(conn, sent) == sent
    assert size_of(conn)[1] - before[1] == nodes


def test_a_session_goes_on_sharing_when_what_stands_before_its_messages_has_changed(conn: sqlite3.Connection) -> None:
    for model in ("one", "another"):
        before = size_of(conn)
        sent = json.dumps({"model": model, "messages": TALK, "tools": TOOLS}).encode()
        assert kept(conn, sent) == sent
    assert size_of(conn)[1] - before[1] == 1


def test_turns_behind_an_image_cost_no_more_than_those_before_it(conn: sqlite3.Connection) -> None:
    image = {"content": [{"type": "image", "data": base64.b64encode(os.urandom(900_000)).decode()}]}
    messages: list[dict[str, object]] = [{"content": "look"}]
    sizes = []
    for turn in range(30):
        messages.append(image if turn == 10 else {"content": base64.b64encode(os.urandom(900)).decode()})
        sent = json.dumps({"messages": messages, "tools": TOOLS}).encode()
        assert kept(conn, sent) == sent
        sizes.append(size_of(conn)[0])
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert max(grown[10:]) < 1.2 * max(grown[2:9])


def test_a_conversation_that_branches_shares_what_came_before(conn: sqlite3.Connection) -> None:
    talk = [{"content": f"{n} " * 500} for n in range(30)]
    one = json.dumps({"messages": [*talk, {"content": "left " * 300}]}).encode()
    two = json.dumps({"messages": [*talk[:20], {"content": "right " * 300}]}).encode()
    first = put(conn, prepare(one))
    before = size_of(conn)
    second = put(conn, prepare(two))
    assert size_of(conn)[1] - before[1] <= 4
    assert (get_body(conn, first), get_body(conn, second)) == (one, two)


def test_what_does_not_compress_is_stored_as_it_is(conn: sqlite3.Connection) -> None:
    noise = os.urandom(4000)
    codec, stored = pack(noise)
    assert (codec, bytes(stored)) == ("raw", noise)
    assert kept(conn, noise) == noise
    codec, stored = pack(b"again and " * 400)
    assert codec == CODEC and len(stored) < 200
    assert unpack(codec, 4000, bytes(stored)) == b"again and " * 400


def test_what_was_compressed_without_a_dictionary_is_still_read() -> None:
    body = b"again and " * 400
    assert unpack("zstd", len(body), zstandard.ZstdCompressor().compress(body)) == body


@pytest.mark.parametrize("count", [1, 2, 40])
def test_short_bodies_come_back_however_many_are_compressed_together(count: int) -> None:
    bodies = [(b"%d " % number) * (30 * number) for number in range(count)] + [b"", b"too short", os.urandom(500)]
    packed = pack_short(bodies)
    assert [unpack(codec, len(body), bytes(data)) for body, (codec, data) in zip(bodies, packed, strict=True)] == bodies
    assert [codec for codec, _ in packed[-3:]] == ["raw"] * 3


def test_the_dictionary_that_stores_were_written_with_is_unchanged() -> None:
    """Whoever trains another one must give it another name: every part that was written with this one needs it."""
    assert (
        hashlib.sha256(dictionary(1).as_bytes()).hexdigest()
        == "888a4ad066592897f1aab8f00e2ce1ee67f072df91490524205bc84fd739ad8a"
    )


def test_a_message_is_a_sixth_smaller_than_without_the_dictionary() -> None:
    said = {"role": "assistant", "content": "Nothing here is long enough to say a thing twice, so it would not shrink."}
    use = {"id": "call_8f3a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "make"}'}}
    message = json.dumps(said | {"tool_calls": [use]}).encode()
    assert len(pack(message)[1]) < len(zstandard.ZstdCompressor(level=3).compress(message)) * 5 / 6


def test_missing_names_only_the_parts_that_are_not_stored(conn: sqlite3.Connection) -> None:
    talk = [{"content": f"{n} " * 500} for n in range(30)]
    put(conn, prepare(json.dumps({"messages": talk}).encode()))
    longer = prepare(json.dumps({"messages": [*talk, {"content": "new " * 500}]}).encode())
    assert len(missing(conn, longer)) == 1


def test_a_lost_or_damaged_part_is_an_error_and_never_wrong_bytes(conn: sqlite3.Connection) -> None:
    short, long = put(conn, prepare(b"abc " * 100)), put(conn, prepare(json.dumps({"m": [{"c": "x" * 9000}]}).encode()))
    conn.execute("UPDATE parts SET body = x'00' WHERE codec = 'zstd-1'")
    for place in (short, long):
        with pytest.raises(Failed, match="decompressed"):
            get_body(conn, place)
    conn.execute("UPDATE parts SET codec = 'lzma'")
    with pytest.raises(Failed, match="lzma"):
        get_body(conn, short)
    conn.execute("DELETE FROM parts")
    for place in (short, long):
        with pytest.raises(Failed, match="lost part"):
            get_body(conn, place)
    conn.execute("DELETE FROM chains")
    with pytest.raises(Failed, match="lost chain"):
        get_body(conn, long)
    assert get_body(conn, (None, None)) is None
