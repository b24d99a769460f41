"""However a stream is framed and wherever it is cut, it arrives as it was sent and folds into the same record."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest

from tests.unit.gateway.serving import DIALECTS, PATHS, asking, serving

FRAMINGS = ["", "cr", "crlf", "tight", "comments", "lines", "torn", "open"]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_bytes_are_the_upstreams_but_for_the_receipt_and_the_record_is_the_same(
    tmp_path: Path, dialect: str, framing: str
) -> None:
    words = f"hello there [[framing {framing}]]" if framing else "hello there"
    body = asking(dialect, words, stream=True)
    async with serving(tmp_path) as reef:
        reply = await reef.send(json.dumps(body).encode(), path=PATHS[dialect])
        receipt = reply.headers["x-reef-agent-record-id"]
        base = reef.engine.base_url + PATHS[dialect].removeprefix("/v1")
        async with aiohttp.ClientSession() as session, session.post(base, json=body) as direct:
            sent = (await direct.read()).replace(b"fake2", b"fake1").replace(b"_2", b"_1").replace(b"id: 2", b"id: 1")
        if dialect == "chat":
            own = next(event for event in reply.events if isinstance(event, dict) and "reef" in event)
            member = b"data: " + json.dumps(own, separators=(",", ":")).encode() + b"\n\n"
        else:
            member = b',"reef":{"agent_record_id":"%s"}' % receipt.encode()
        assert reply.body.count(member) == 1 and reply.body.replace(member, b"") == sent
        row = (await reef.settled())[0]
        assert (row["state"], row["error"], row["answer_preview"]) == ("complete", None, "You said: hello there")
        assert row["receipt"] == receipt
        plain = await reef.ask(dialect, "hello there", stream=False)
        folded, whole = reef.stored(row), plain.json
        for reply_body in (folded, whole):
            for name in ("id", "usage", "output"):
                reply_body.pop(name, None)
        assert folded == whole


@pytest.mark.parametrize("dialect", ["responses", "messages"])
async def test_the_receipt_stands_on_the_ending_event_as_a_member_of_its_own(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, "hello", stream=True)
        last = reply.events[-1]
        assert last["type"] == {"responses": "response.completed", "messages": "message_stop"}[dialect]
        assert last["reef"] == {"agent_record_id": reply.headers["x-reef-agent-record-id"]}
        assert all("reef" not in event for event in reply.events[:-1])
