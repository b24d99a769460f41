"""Fields that reef does not know, headers of a protocol, and query strings reach the other side as they were sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.gateway.serving import DIALECTS, PATHS, asking, serving

STRANGE = (
    ',"chat_template_kwargs":{"enable_thinking":false},"top_k":20,\t"x_future":{"a":[1,null,1.50,1e400]},'
    '"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"context_management":{"edits":[]}}\n'
)


def strange(dialect: str, words: str, stream: bool) -> bytes:
    """A request with fields that nobody has heard of, and blanks where nobody puts them."""
    body = asking(dialect, words, stream=stream)
    for turn in body.get("messages") or body["input"]:
        turn["reasoning_content"] = "r"
    return (json.dumps(body)[:-1] + STRANGE).encode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_unknown_fields_of_a_request_arrive_byte_for_byte(tmp_path: Path, dialect: str, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        body = strange(dialect, "hello", stream)
        assert (await reef.send(body, path=PATHS[dialect])).status == 200
        assert reef.seen()[0]["body"].encode() == body
        row = (await reef.settled())[0]
        assert (row["dialect"], row["state"], row["preview"]) == (dialect, "complete", "hello")
        assert reef.request_of(row) == body


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_unknown_fields_of_a_reply_arrive_byte_for_byte(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "hello [[extra]]")
        assert '"x_meta": {"k": 1, "ü": [1, null, 1.5]}' in reply.body.decode()
        assert reef.response_of((await reef.settled())[0]) == reply.body
        streamed = await reef.ask(dialect, "hello [[extra]]", stream=True)
        assert streamed.body.decode().count('"x_meta": {"k": 1, "ü": [1, null, 1.5]}') >= 1
        assert reef.stored((await reef.settled(2))[1])["x_meta"] == {"k": 1, "ü": [1, None, 1.5]}


@pytest.mark.parametrize("dialect", [*DIALECTS, "count"])
async def test_protocol_headers_arrive_and_those_of_the_connection_and_of_reef_do_not(
    tmp_path: Path, dialect: str
) -> None:
    sent = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2026-01-01,two-2026-02-02",
        "openai-beta": "x=1",
        "authorization": "Bearer reef-client-token",
        "x-api-key": "reef-client-token",
        "x-reef-scenario": "mine",
        "te": "trailers",
        "connection": "x-hop",
        "x-hop": "1",
    }
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "hello", sent, query="?beta=true&x=%2F+a")
        assert reply.status == 200
        seen = reef.seen()[0]
        assert seen["path"] == f"{PATHS[dialect]}?beta=true&x=%2F+a"
        assert {name: seen["headers"][name] for name in list(sent)[:3]} == dict(list(sent.items())[:3])
        assert not {"x-reef-scenario", "te", "x-hop"} & set(seen["headers"])
        assert "reef-client-token" not in reef.log.read_text()
        assert seen["headers"]["host"] == reef.engine.base_url.split("/")[2]
        own = {name: seen["headers"].get(name) for name in ("authorization", "x-api-key")}
        anthropic = dialect in ("messages", "count")
        assert own == {"authorization": "Bearer sk-upstream", "x-api-key": "sk-upstream" if anthropic else None}
