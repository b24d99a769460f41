"""A model that spends all its tokens on reasoning has said no answer, and is not shown as one that said nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.fakes.raw_server import DONE, answering, chunk, delta, stream
from tests.unit.gateway.serving import serving

COUNTED = {"prompt_tokens": 7, "completion_tokens": 40, "total_tokens": 47}
SENT = stream(
    delta(reasoning_content="let me "),
    delta(reasoning_content="see"),
    chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}),
    chunk({"choices": [], "usage": COUNTED}),
    DONE,
)


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
async def test_the_client_gets_it_as_reasoning_and_the_record_keeps_it_apart(tmp_path: Path, client: str) -> None:
    async with answering(SENT) as address:
        async with serving(tmp_path, engine=UpstreamEngine(address, "m", dialects=("chat",))) as reef:
            reply = await reef.ask(client, "think", stream=True)
            row = (await reef.settled())[0]
            found = reef.stored(row)
    assert (row["state"], row["prompt_tokens"], row["completion_tokens"]) == ("complete", 7, 40)
    # The preview of an answer is not made of what was no answer.
    assert not row["answer_preview"]
    if client == "chat":
        message = found["choices"][0]["message"]
        assert (message["reasoning_content"], message.get("content") or "") == ("let me see", "")
        assert row["finish_reason"] == "length"
    elif client == "messages":
        assert [(block["type"], block["thinking"]) for block in found["content"]] == [("thinking", "let me see")]
        assert reply.events[-2]["delta"]["stop_reason"] == row["finish_reason"] == "max_tokens"
        assert reply.events[-2]["usage"]["output_tokens"] == 40
    else:
        assert [item["type"] for item in found["output"]] == ["reasoning"]
        assert reply.events[-1]["type"] == "response.incomplete" and row["finish_reason"] == "max_output_tokens"
