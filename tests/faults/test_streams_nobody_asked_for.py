"""A server that streams although it was not asked to is folded into the one reply that the client waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.serving import DIALECTS, serving


def text_of(dialect: str, reply: dict[str, Any]) -> str:
    """The answer's text."""
    if dialect == "chat":
        return str(reply["choices"][0]["message"]["content"])
    if dialect == "responses":
        return str(reply["output"][0]["content"][0]["text"])
    return str(reply["content"][0]["text"])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_client_gets_one_json_reply_and_the_record_is_whole(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "hello [[stream anyway]]", stream=False)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert text_of(dialect, reply.json) == "You said: hello"
        plain = await reef.ask(dialect, "hello", stream=False)
        assert set(reply.json) >= set(plain.json) - {"usage"}
        row = (await reef.settled(2))[0]
        assert (row["state"], row["answer_preview"]) == ("complete", "You said: hello")
        assert reef.response_of(row) == reply.body


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_without_a_reply_in_it_is_an_error_that_says_so(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "[[stream anyway]] [[error first]]", stream=False)
        assert reply.status == 502
        assert "quota exceeded" in reply.json["error"]["message"]
        assert (await reef.settled())[0]["state"] == "failed"
