"""A conversation that a request names instead of repeating it is shown whole, or said not to be recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reef.records.reader import Reader
from reef.tui.views import conversation
from tests.unit.gateway.serving import PATHS, Serving, serving


async def say(reef: Serving, words: str | list[Any], follows: str | None, stream: bool) -> dict[str, Any]:
    """Make a call and return its reply."""
    body = {"model": "m", "input": words, "previous_response_id": follows, "stream": stream}
    reply = await reef.send(json.dumps(body).encode(), path=PATHS["responses"])
    found = reply.events[-1]["response"] if stream else reply.json
    assert isinstance(found, dict)
    return found


def page(receipt: str, reader: Reader) -> str:
    """The text of a record's page."""

    def bodies(receipt: str) -> tuple[bytes | None, bytes | None]:
        return reader.request_bytes(receipt), reader.response_bytes(receipt)

    record = reader.record(receipt)
    earlier, record["earlier_note"] = conversation.earlier(record, reader.record)
    blocks = conversation.blocks(record, *bodies(receipt), [bodies(one["agent_record_id"]) for one in earlier])
    lines = [line for block in blocks for line in [block.head, *block.lines()] if line is not None]
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_by_reference_are_shown_behind_the_calls_they_go_on_from(tmp_path: Path, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        first = await say(reef, "my name is Ada", None, stream)
        second = await say(reef, "what is it?", first["id"], stream)
        await say(reef, "and now?", second["id"], stream)
        rows = await reef.settled(3)
        reader = Reader(reef.writer.path)
        try:
            receipts = [row["receipt"] for row in rows]
            found = [reader.record(receipt) for receipt in receipts]
            assert [one["follows"] for one in found] == [None, first["id"], second["id"]]
            assert [one["follows_record"] for one in found] == [None, *receipts[:2]]
            text = page(receipts[2], reader)
            said = ("my name is Ada", "You said: my name is Ada", "what is it?", "You said: what is it?", "and now?")
            places = [text.index(part) for part in said]
            assert places == sorted(places) and "not recorded" not in text
        finally:
            reader.close()


async def test_a_call_that_says_nothing_new_is_shown_with_the_conversation_that_it_goes_on_from(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        first = await say(reef, "my name is Ada", None, False)
        await say(reef, [], first["id"], False)
        row = (await reef.settled(2))[1]
        reader = Reader(reef.writer.path)
        try:
            text = page(row["receipt"], reader)
            assert text.index("my name is Ada") < text.index("You said: my name is Ada")
            assert "not recorded" not in text
        finally:
            reader.close()


async def test_a_reference_to_a_call_that_is_not_recorded_has_no_record_behind_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await say(reef, "go on", "resp_elsewhere", False)
        row = (await reef.settled())[0]
        reader = Reader(reef.writer.path)
        try:
            found = reader.record(row["receipt"])
            assert (found["follows"], found["follows_record"]) == ("resp_elsewhere", None)
            text = page(row["receipt"], reader)
            assert "go on" in text and "the earlier part of this conversation was not recorded" in text
        finally:
            reader.close()
