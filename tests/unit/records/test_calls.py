"""One call's row: open before the first byte, settled once, interrupted after a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef import events
from reef.errors import InvalidInput, NotFound
from reef.ids import new_id
from reef.records.calls import (
    INTERRUPTED,
    OpenRecord,
    Settlement,
    attach_request,
    flush_progress,
    make_body,
    mark_interrupted,
    open_record,
    settle_record,
    store_record,
)
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded, settled

REQUEST = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
REPLY = b'{"choices":[{"message":{"content":"hello"}}]}'


def flush(writer: Writer, receipt: str, text: bytes) -> None:
    writer.submit(lambda conn: flush_progress(conn, receipt, text)).result(30)


def test_an_open_record_resolves_with_its_request_before_there_is_a_reply(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, REQUEST, model="m", preview="hi", session="s1", streaming=True, source="person", version=3)
    record = reader.record(receipt)
    assert record["state"] == "open"
    assert (record["model"], record["preview"], record["session"], record["version"]) == ("m", "hi", "s1", 3)
    assert (record["streaming"], record["source"], record["side_call"]) == (True, "person", False)
    assert record["request_bytes"] == len(REQUEST)
    assert reader.request_bytes(receipt) == REQUEST
    assert reader.response_bytes(receipt) is None


def test_a_settled_record_has_everything_that_the_gateway_measured(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, REQUEST, model="alias", engine="upstream")
    settled(
        writer, receipt, response=REPLY, raw=b"data: {}\n\n", status=200, first_byte_ms=12.5, duration_ms=80.25,
        prompt_tokens=7, completion_tokens=2, cached_tokens=0, finish_reason="stop", answer_preview="hello",
        model="m-2026", load_id="a:1", attempts=[{"status": 529}, {"status": 200}], notes={"likely_cut": [4000, 2051]},
    )  # fmt: skip
    record = reader.record(receipt)
    expected: dict[str, Any] = {
        "state": "complete", "status": 200, "error": None, "first_byte_ms": 12.5, "duration_ms": 80.25,
        "prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 0, "finish_reason": "stop",
        "answer_preview": "hello", "model": "m-2026", "load_id": "a:1", "response_bytes": len(REPLY),
        "attempts": [{"status": 529}, {"status": 200}], "notes": {"likely_cut": [4000, 2051]}, "has_raw": True,
        "trainable": True, "engine": "upstream",
    }  # fmt: skip
    assert {key: record[key] for key in expected} == expected
    assert (reader.response_bytes(receipt), reader.raw_bytes(receipt)) == (REPLY, b"data: {}\n\n")


@pytest.mark.parametrize("state", ["partial", "failed", "cancelled", "interrupted"])
def test_only_a_complete_reply_may_be_trained_on(writer: Writer, reader: Reader, state: Any) -> None:
    receipt = opened(writer)
    settled(writer, receipt, state, response=b"half of", trainable=True)
    assert (reader.record(receipt)["state"], reader.record(receipt)["trainable"]) == (state, False)


def test_a_record_settles_once(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer)
    settled(writer, receipt, "cancelled", response=b"first")
    told = reader.last_event()
    settled(writer, receipt, "complete", response=b"second")
    assert reader.record(receipt)["state"] == "cancelled"
    assert reader.response_bytes(receipt) == b"first"
    assert reader.last_event() == told


def test_settling_what_was_never_opened_is_an_error_and_stores_nothing(writer: Writer, reader: Reader) -> None:
    with pytest.raises(NotFound):
        settled(writer, new_id(), response=b"lost")
    assert reader.counts()["records"]["count"] == 0


def test_opening_the_same_receipt_twice_is_refused(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, b"first")
    with pytest.raises(Exception, match="UNIQUE"):
        opened(writer, b"second", receipt=receipt)
    assert reader.request_bytes(receipt) == b"first"
    with pytest.raises(InvalidInput):
        opened(writer, receipt="not-a-receipt")


def test_each_call_tells_its_two_events_in_order(writer: Writer, reader: Reader) -> None:
    receipt = recorded(writer)
    told = [(event["kind"], event["ids"], event["state"], event["scenario"]) for event in reader.events()]
    assert told == [
        (events.RECORD_OPENED, {"record": receipt}, "open", "default"),
        (events.RECORD_SETTLED, {"record": receipt}, "complete", "default"),
    ]


def test_a_running_stream_shows_what_was_flushed_and_its_end_replaces_that(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, streaming=True)
    flush(writer, receipt, b"The quick ")
    flush(writer, receipt, "brown fo\u00df".encode())
    assert reader.response_bytes(receipt) == "The quick brown fo\u00df".encode()
    settled(writer, receipt, response=REPLY)
    assert reader.response_bytes(receipt) == REPLY
    flush(writer, receipt, b"too late")
    assert writer.submit(lambda conn: conn.execute("SELECT count(*) FROM progress").fetchone()[0]).result(30) == 0


def test_after_a_crash_open_calls_are_interrupted_with_the_text_that_was_flushed(store: Any) -> None:
    writer = Writer(store)
    done = recorded(writer)
    streaming, silent = opened(writer, REQUEST, streaming=True), opened(writer, REQUEST)
    flush(writer, streaming, b"first line\nsec")
    flush(writer, streaming, b"ond")
    writer.close()

    writer, reader = Writer(store), Reader(store)
    assert writer.submit(mark_interrupted).result(30) == 2
    record = reader.record(streaming)
    assert (record["state"], record["error"], record["trainable"]) == ("interrupted", INTERRUPTED, False)
    assert record["answer_preview"] == "first line"
    assert reader.response_bytes(streaming) == b"first line\nsecond"
    assert (reader.record(silent)["state"], reader.response_bytes(silent)) == ("interrupted", None)
    assert reader.record(done)["state"] == "complete"
    assert writer.submit(mark_interrupted).result(30) == 0
    writer.close()


def test_an_interrupted_stream_is_folded_into_its_dialects_shape(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, streaming=True, dialect="chat")
    flush(writer, receipt, b"half")
    writer.submit(
        lambda conn: mark_interrupted(conn, lambda dialect, text: json.dumps([dialect, text.decode()]).encode())
    ).result(30)
    assert reader.response_bytes(receipt) == b'["chat", "half"]'


def test_a_key_that_comes_in_two_flushes_is_cut_out(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, streaming=True)
    key = "ghp_" + "a1B2" * 9
    flush(writer, receipt, b"use " + key[:20].encode())
    flush(writer, receipt, key[20:].encode() + b" now")
    flush(writer, receipt, b" and sk-" + b"c" * 24)
    assert reader.response_bytes(receipt) == b"use [redacted:github-token] now and [redacted:openai-key]"


def test_a_large_request_is_attached_to_a_row_that_is_there_already(writer: Writer, reader: Reader) -> None:
    body = make_body(REQUEST * 20_000)
    receipt = opened(writer, None, request_bytes=body.received_bytes)  # type: ignore[arg-type]
    assert reader.record(receipt)["request_bytes"] == len(REQUEST) * 20_000
    assert reader.request_bytes(receipt) is None
    writer.submit(lambda conn: attach_request(conn, receipt, body)).result(30)
    assert reader.request_bytes(receipt) == REQUEST * 20_000


@pytest.mark.parametrize("at_once", [False, True], ids=["opened and settled", "stored at once"])
def test_texts_and_numbers_that_sqlite_cannot_hold_do_not_lose_the_record(
    writer: Writer, reader: Reader, at_once: bool
) -> None:
    call = OpenRecord(
        new_id(), "default", "chat", "/v1/\udffe", REQUEST, model="m\ud800", preview="\udfff hi", session="s\ud801",
        tags={"client": "\ud802"},
    )  # fmt: skip
    end = Settlement(
        "complete", response=REPLY, error="\ud803", finish_reason="\ud804", answer_preview="\ud805",
        prompt_tokens=10**30, completion_tokens=-(10**30), cached_tokens=2**63, notes={"odd": "\ud806"},
    )  # fmt: skip
    if at_once:
        writer.submit(lambda conn: store_record(conn, call, end)).result(30)
    else:
        writer.submit(lambda conn: open_record(conn, call)).result(30)
        writer.submit(lambda conn: settle_record(conn, call.receipt, end)).result(30)
    record = reader.record(call.receipt)
    assert (record["model"], record["preview"], record["answer_preview"]) == ("m?", "? hi", "?")
    assert (record["session"], record["error"], record["finish_reason"]) == ("s?", "?", "?")
    assert (record["prompt_tokens"], record["completion_tokens"], record["cached_tokens"]) == (None, None, None)
    assert record["notes"] == {"odd": "?"}
    assert record["state"] == "complete"


def test_previews_are_cut_to_two_hundred_characters(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, preview="p" * 1000)
    settled(writer, receipt, answer_preview="a" * 1000)
    assert reader.record(receipt)["preview"] == "p" * 200
    assert reader.record(receipt)["answer_preview"] == "a" * 200


async def test_the_operations_run_through_a_coroutine_as_the_gateway_does(writer: Writer, reader: Reader) -> None:
    call = OpenRecord(new_id(), "default", "chat", "/v1/chat/completions", REQUEST)
    assert await writer.write(lambda conn: open_record(conn, call)) is None
    await writer.write(lambda conn: settle_record(conn, call.receipt, Settlement("complete", response=REPLY)))
    assert reader.response_bytes(call.receipt) == REPLY
