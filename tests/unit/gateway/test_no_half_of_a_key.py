"""A key that comes in pieces, or that a preview ends in, leaves no half of it in the store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reef.credentials import hold
from reef.gateway import streaming
from reef.gateway.chat import ChatDialect
from reef.gateway.recording import Patience, Recording
from reef.gateway.streaming import StreamCopy
from reef.ids import new_id
from reef.records.calls import OpenRecord
from reef.records.writer import Writer
from tests.fakes.raw_server import delta
from tests.unit.gateway.serving import serving

KEY = "sk-" + "a1B2" * 6


async def test_a_key_that_a_slow_stream_says_word_by_word_is_never_flushed_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "FLUSH_EVERY_S", 0.0)
    hold("hunter2-secret")
    writer = Writer(tmp_path / "reef.db")
    recording = Recording(writer, new_id(), True, 0.0, Patience(), on_loss=lambda *_: None)
    recording.open(
        OpenRecord(recording.receipt, "default", "chat", "/v1/chat/completions", None, streaming=True), b"{}"
    )
    copy = StreamCopy(ChatDialect(), recording, keep_raw=False)
    said = f"use {KEY} or hunter2-secret and "
    for start in range(0, len(said), 4):
        copy.take(delta(content=said[start : start + 4]))
        copy.flush_if_due()
        await writer.write(lambda conn: None)
    with sqlite3.connect(writer.path) as store:
        pieces = [row[0].decode() for row in store.execute("SELECT body FROM progress ORDER BY sequence")]
    writer.close()
    assert len(pieces) >= 4
    assert "".join(pieces) == "use [redacted:openai-key] or [redacted:secret] and "
    for file in tmp_path.glob("reef.db*"):
        assert not any(part in file.read_bytes() for part in (b"sk-a", b"a1B2", b"hunter"))


async def test_a_key_that_the_end_of_a_preview_or_of_an_error_cuts_is_not_kept_by_half(tmp_path: Path) -> None:
    hold("hunter2-secret")
    async with serving(tmp_path) as place:
        # The beginning of a preview, then where an error is cut.
        for at, more in ((170, ""), (185, ""), (199, ""), (485, "[[status 401]]"), (499, "[[status 401]]")):
            for key in (KEY, "hunter2-secret"):
                await place.chat(f"[[say {'x' * at} {key} {'y' * 600}]]{'x' * at} {key} {'y' * 600} {more}")
        records = await place.settled(10)
    assert {len(row["preview"]) for row in records} == {200}
    for row in records:
        for name in ("preview", "answer_preview", "error"):
            assert not any(part in (row[name] or "") for part in ("sk-", "a1B2", "hunter")), (name, row[name])
