"""What the tests of the translation say and hear: requests, chat streams, and the stream that a client is told."""

from __future__ import annotations

import json
from typing import Any

from reef.engines.engine import CHAT
from reef.gateway.translate import Compat, Exchange, translate

RECEIPT = "0123456789abcdef0123456789abcdef"
CREATED = 1_760_000_000
Json = dict[str, Any]


def exchange(client: str, upstream: str, body: Json, compat: Compat | None = None) -> Exchange:
    """A translated request; the client's own body must stay as it was."""
    before = json.dumps(body)
    found = translate(client, upstream, {"model": "m", **body}, receipt=RECEIPT, created=CREATED, compat=compat)
    assert json.dumps(body) == before
    return found


def sent(client: str, upstream: str, body: Json, compat: Compat | None = None) -> Json:
    """What the upstream gets."""
    return exchange(client, upstream, body, compat).body


def asked(client: str, **more: Any) -> Json:
    """The smallest request of a dialect."""
    said = [{"role": "user", "content": "hi"}]
    return {"model": "m", **({"input": said} if client == "responses" else {"messages": said}), **more}


def delta(part: Json, finish: str | None = None, **more: Any) -> Json:
    """A chunk of a chat stream."""
    return {"id": "c", "model": "up", "choices": [{"index": 0, "delta": part, "finish_reason": finish, **more}]}


def piece(index: int, arguments: str = "", call_id: str = "", name: str = "") -> Json:
    """A chunk with a piece of a tool call."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    head = {"id": call_id, "type": "function"} if call_id else {}
    return delta({"tool_calls": [{"index": index, **head, "function": function}]})


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> Json:
    """The last chunk of a chat stream."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return {"id": "c", "model": "up", "choices": [], "usage": counts}


def told(client: str, upstream: str, events: list[Json], request: Json | None = None, done: bool = True) -> list[Json]:
    """The events that a client is told for a stream of the upstream."""
    stream = exchange(client, upstream, request or asked(client, stream=True)).stream()
    found = [told for event in events for told in stream.take(event)]
    return found + (stream.done() if done else [])


def from_chat(client: str, *chunks: Json) -> list[Json]:
    """The same for a chat upstream."""
    return told(client, CHAT, list(chunks))


def blocks(events: list[Json]) -> list[Json]:
    """The content blocks of a messages stream, put together as an SDK does; each must be closed before the next."""
    found: list[Json] = []
    open_index: int | None = None
    for event in events:
        if event["type"] == "content_block_start":
            assert open_index is None and event["index"] == len(found)
            open_index = event["index"]
            found.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_index
            part, block = event["delta"], found[-1]
            if part["type"] == "input_json_delta":
                block["json"] += part["partial_json"]
            elif part["type"] == "signature_delta":
                block["signature"] = part["signature"]
            else:
                name = part["type"].removesuffix("_delta")
                block[name] += part[name]
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_index
            open_index = None
    assert open_index is None
    return found
