"""A token count comes from the configured model server, or is an estimate that says so and is not too low."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reef.gateway.estimate import text_at_most
from tests.unit.gateway.serving import serving

PROSE = "Every exchange is a record and hands back a receipt. " * 40
TRUE_COUNTS = {
    PROSE: 441,
    'def add(a: int, b: int) -> int:\n    """The sum."""\n    return a + b\n\n\n' * 30: 779,
    json.dumps([{"id": number, "name": f"n{number}", "v": number * 1.5} for number in range(100)], indent=2): 3009,
    "0123456789" * 100: 1000,
    "我们今天去公园散步,天气很好。" * 30: 870,
}
"""Texts with their true counts by SmolLM2's tokenizer."""


async def test_a_count_is_asked_of_the_configured_server_and_recorded(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask("count", "hello [[prompt 321]]", query="?beta=true")
        assert (reply.status, reply.json) == (200, {"input_tokens": 321})
        assert "x-reef-estimate" not in reply.headers
        assert reef.seen()[0]["path"] == "/v1/messages/count_tokens?beta=true"
        row = (await reef.settled())[0]
        assert row["receipt"] == reply.headers["x-reef-agent-record-id"]
        assert (row["dialect"], row["route"], row["state"]) == ("messages", "/v1/messages/count_tokens", "complete")
        assert (row["prompt_tokens"], row["trainable"], row["side_call"]) == (321, 0, 1)


@pytest.mark.parametrize("known", [True, False])
async def test_without_the_route_there_is_an_estimate_that_says_so(tmp_path: Path, known: bool) -> None:
    speaks = ("chat", "messages") if known else ("chat",)
    async with serving(tmp_path, more=(), speaks=speaks, known=known) as reef:
        reply = await reef.ask("count", PROSE)
        assert (reply.status, reply.headers["x-reef-estimate"]) == (200, "1")
        assert set(reply.json) == {"input_tokens"}
        assert TRUE_COUNTS[PROSE] <= reply.json["input_tokens"] < 2 * TRUE_COUNTS[PROSE]
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"], row["side_call"], row["status"]) == ("complete", 0, 1, 200)
        assert json.loads(row["notes_json"]) == {"estimate": True}
        assert row["receipt"] == reply.headers["x-reef-agent-record-id"]


@pytest.mark.parametrize("more", [("/messages/count_tokens",), ()], ids=["counts", "does not"])
async def test_no_other_host_is_asked(tmp_path: Path, more: tuple[str, ...]) -> None:
    asked: set[Any] = set()
    listening = True

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if listening and event in ("socket.connect", "socket.getaddrinfo"):
            asked.add(arguments[0 if event == "socket.getaddrinfo" else 1][0])

    # A hook stays as long as its process.
    sys.addaudithook(heard)
    async with serving(tmp_path, more=more, known=False) as reef:
        assert (await reef.ask("count", "hello", query="?beta=true")).status == 200
    listening = False
    assert asked == {"127.0.0.1"}


async def test_an_error_that_is_no_missing_route_reaches_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask("count", "[[status 429]]")
        assert (reply.status, reply.json["type"]) == (429, "error")
        assert "x-reef-estimate" not in reply.headers


@pytest.mark.parametrize("text", list(TRUE_COUNTS))
def test_the_estimate_is_never_below_the_true_count(text: str) -> None:
    assert TRUE_COUNTS[text] <= text_at_most(text) <= 2.1 * TRUE_COUNTS[text]
