"""Credentials are cut out before anything is hashed or stored."""

from __future__ import annotations

import base64
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef import credentials
from reef.credentials import hold
from reef.ids import new_id
from reef.records.calls import OpenRecord, Settlement, open_record, settle_record, store_record
from reef.records.reader import Reader
from reef.records.redact import redact
from reef.records.writer import Writer
from tests.unit.records.calling import opened, settled

KEYS = {
    "openai": "sk-" + "a1B2" * 6,
    "openai project": "sk-proj-" + "c3_-" * 8,
    "anthropic": "sk-ant-api03-" + "D4_-" * 8,
    "github": "ghp_" + "e5F6" * 9,
    "github fine grained": "github_pat_" + "g7H8" * 9,
    "gitlab": "glpat-" + "i9J0" * 5,
    "aws": "AKIA" + "A1B2" * 4,
    "slack": "xoxb-" + "1234567890",
    "google": "AIza" + "k" * 35,
    "hugging face": "hf_" + "l1M2" * 9,
    "stripe": "sk_live_" + "n3O4" * 6,
    "token": "eyJ" + "p" * 12 + ".eyJ" + "q" * 12 + "." + "r" * 12,
    "reef": "reef-" + "s" * 43,
    "private key": "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----",
}
HARMLESS = ["task-specific", "risk-free", "disk-", "hf_model", "eyJ", "ghp_short", "AKIA", '"', " ", "x", "-", "_"]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_each_known_format_is_replaced_and_nothing_around_it(key: str) -> None:
    before, after = b'{"content":"use ', b' please"}'
    changed, count = redact(before + key.encode() + after)
    assert count == 1
    assert changed.startswith(before + b"[redacted:") and changed.endswith(b"]" + after)
    assert key.encode() not in changed


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("before", [r"\n", r"\t", r"\n-", "-", "="])
def test_a_key_at_the_beginning_of_a_line_is_replaced_although_its_line_end_is_a_letter(before: str, key: str) -> None:
    body = f'{{"content":"these:{before}{key}"}}'.encode()
    changed, count = redact(body)
    assert count == 1
    assert key.encode() not in changed


@pytest.mark.parametrize("unit", ["eyJ-", "eyJ", "eyJ" + "a" * 13 + ".", "-----BEGIN ", "sk-", "reef-", "xoxb-", "A"])
def test_no_body_makes_the_search_slow(unit: str) -> None:
    body = ("eyJ" + "p" * 12 + ".eyJ" + "q" * 12 + "." + "r" * 12 + " ").encode()
    body += unit.encode() * (4 * 1024 * 1024 // len(unit))
    started = time.process_time()
    redact(body)
    assert time.process_time() - started < 5


def test_a_body_without_a_key_is_the_same_object() -> None:
    body = b'{"content":"a task-specific rule for sk-learn and hf_hub, reef-pi and disk-usage"}'
    assert redact(body) == (body, 0)
    assert redact(body)[0] is body


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*KEYS.values(), *HARMLESS]), max_size=8))
def test_the_quick_search_finds_what_the_patterns_find(pieces: list[str]) -> None:
    body = "".join(pieces).encode()
    expected, total = body, 0
    for kind, pattern in credentials._BYTES:
        expected, count = pattern.subn(b"[redacted:" + kind.encode() + b"]", expected)
        total += count
    assert redact(body) == (expected, total)


def test_a_key_that_straddles_the_pieces_of_a_large_body_is_found() -> None:
    key = KEYS["anthropic"].encode()
    for shift in range(-len(key), 2, 7):
        body = b"x" * (1024 * 1024 + shift) + b" " + key + b" " + b"y" * 1000
        assert redact(body)[1] == 1


def test_a_large_body_is_replaced_piece_by_piece_as_if_at_once() -> None:
    piece = 256 * 1024
    for shift in range(-80, 3, 9):
        body = b" ".join(
            [b"x" * (piece + shift), *(key.encode() + b" " * 20_000 for key in KEYS.values()), b"A" * piece]
        )
        expected, total = body, 0
        for kind, pattern in credentials._BYTES:
            expected, count = pattern.subn(b"[redacted:" + kind.encode() + b"]", expected)
            total += count
        assert redact(body) == (expected, total)
        assert total == len(KEYS)


def test_a_key_of_any_length_is_replaced_to_its_end() -> None:
    for length in (20_000, 290_000, 1_000_000):
        token = b"eyJ" + b"p" * 30 + b".eyJ" + b"q" * 40 + b"." + b"r" * length
        assert redact(b"x" * 100 + b" " + token + b" y") == (b"x" * 100 + b" [redacted:jwt] y", 1)
        assert redact(b"sk-" + b"a" * length + b".") == (b"[redacted:openai-key].", 1)


def test_a_large_image_is_searched_in_little_time() -> None:
    body = base64.b64encode(random.Random(1).randbytes(12 * 1024 * 1024))
    started = time.process_time()
    assert redact(body)[1] == 0
    assert time.process_time() - started < 3


def test_no_key_reaches_the_file_and_the_record_says_how_many_there_were(writer: Writer, reader: Reader) -> None:
    key = KEYS["openai"]
    receipt = opened(writer, f'{{"content":"{key} {key}"}}'.encode(), preview=f"my key is {key}")
    settled(writer, receipt, response=f"take {key}".encode(), answer_preview=f"take {key}", error=f"refused {key}")
    record = reader.record(receipt)
    assert record["redactions"] == 3
    assert record["trainable"] is False
    assert record["preview"] == "my key is [redacted:openai-key]"
    assert reader.request_bytes(receipt) == b'{"content":"[redacted:openai-key] [redacted:openai-key]"}'
    assert record["request_bytes"] == len(key) * 2 + 15
    for file in Path(writer.path.parent).glob("reef.db*"):
        assert key.encode() not in file.read_bytes()


def test_a_key_in_the_request_alone_leaves_the_reply_trainable(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, KEYS["github"].encode())
    settled(writer, receipt, response=b"fine")
    assert (reader.record(receipt)["redactions"], reader.record(receipt)["trainable"]) == (1, True)


def test_redaction_can_be_switched_off(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, KEYS["openai"].encode(), redact=False)
    assert reader.request_bytes(receipt) == KEYS["openai"].encode()


def test_a_secret_of_this_process_is_cut_out_of_a_call_even_when_redaction_is_off(
    writer: Writer, reader: Reader
) -> None:
    hold("hunter2-secret")
    receipt = opened(writer, b"hunter2-secret", preview="say hunter2-secret", redact=False)
    said = "refused hunter2-secret"
    settled(writer, receipt, "failed", response=said.encode(), answer_preview=said, error=said, redact=False)
    record = reader.record(receipt)
    assert (record["preview"], record["error"], record["answer_preview"], record["redactions"]) == (
        "say [redacted:secret]", "refused [redacted:secret]", "refused [redacted:secret]", 2,
    )  # fmt: skip
    assert reader.response_bytes(receipt) == b"refused [redacted:secret]"


@pytest.mark.parametrize("at_once", [True, False])
def test_no_key_reaches_what_a_call_is_called_by(writer: Writer, reader: Reader, at_once: bool) -> None:
    key = KEYS["openai"]
    call = OpenRecord(
        new_id(), "default", "chat", f"/s/{key}", b"{}", model=key, session=key, adapter=key, tags={key: key, "b": "x"},
    )  # fmt: skip
    end = Settlement(
        "failed", error=f"bad {key}", finish_reason=key, model=f"m {key}", load_id=key,
        attempts=[{"error": key}], notes={"why": f"{key} \ud800"},
    )  # fmt: skip
    if at_once:
        writer.submit(lambda conn: store_record(conn, call, end)).result(30)
    else:
        writer.submit(lambda conn: open_record(conn, call)).result(30)
        writer.submit(lambda conn: settle_record(conn, call.receipt, end)).result(30)
    record = reader.record(call.receipt)
    assert record["tags"] == {"[redacted:openai-key]": "[redacted:openai-key]", "b": "x"}
    assert record["notes"] == {"why": "[redacted:openai-key] ?"}
    assert record["model"] == "m [redacted:openai-key]"
    # One name stays one name, stored and looked for.
    assert [row["agent_record_id"] for row in reader.records(session=key)] == [call.receipt]
    for file in Path(writer.path.parent).glob("reef.db*"):
        assert key.encode() not in file.read_bytes()


def test_a_preview_is_cut_behind_the_filter(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, preview="x" * 185 + " " + KEYS["openai"])
    assert reader.record(receipt)["preview"] == "x" * 185 + " [redacted:open"


def test_a_stream_whose_events_hold_a_key_in_pieces_is_not_kept(writer: Writer, reader: Reader) -> None:
    key = KEYS["openai"]
    pieces = f'data: {{"content":"{key[:9]}"}}\n\ndata: {{"content":"{key[9:]}"}}\n\n'.encode()
    receipt = opened(writer, streaming=True)
    settled(writer, receipt, response=f'{{"content":"{key}"}}'.encode(), raw=pieces)
    assert reader.raw_bytes(receipt) is None
    other = opened(writer, streaming=True)
    settled(writer, other, response=b"{}", raw=b"data: {}\n\n")
    assert reader.raw_bytes(other) == b"data: {}\n\n"


def test_a_preview_with_a_lone_surrogate_is_kept_readable(writer: Writer, reader: Reader) -> None:
    receipt = opened(writer, preview=f"\ud800 {KEYS['openai']}")
    assert reader.record(receipt)["preview"] == "? [redacted:openai-key]"
