"""What goes through the relay goes through unchanged, and nothing of one side leaks to the other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.unit.gateway.serving import serving

STRANGE = (
    b'{ "model":"m","messages":[{"role":"user","content":"h\\u00e9 \xc3\xa9 \\ud83d\\ude00"}],\t'
    b'"x_future":{"a":[1,null,1.50,1e400]},"chat_template_kwargs":{"enable_thinking":false},"top_k":20}\n'
)


async def test_the_request_body_reaches_the_upstream_byte_for_byte(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.send(STRANGE)
        assert reply.status == 200
        assert reef.seen()[0]["body"].encode() == STRANGE
        row = (await reef.settled())[0]
        assert reef.request_of(row) == STRANGE


async def test_half_a_surrogate_pair_is_relayed_and_recorded(tmp_path: Path) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"cut \\ud83d"}]}'
    async with serving(tmp_path) as reef:
        assert (await reef.send(body)).status == 200
        row = (await reef.settled())[0]
        assert (row["state"], row["preview"]) == ("complete", "cut ?")
        assert reef.request_of(row) == body


async def test_a_model_is_put_in_only_where_the_call_names_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        await reef.send(b'{ "messages": [{"role":"user","content":"a"}] }')
        await reef.send(b'{"model":"mine", "messages": [{"role":"user","content":"a"}] }')
        await reef.send(b'{"model":null,"messages": [{"role":"user","content":"a"}] }')
        bodies = [request["body"] for request in reef.seen()]
        assert bodies[0] == '{"model":"default-model", "messages": [{"role":"user","content":"a"}] }'
        assert bodies[1] == '{"model":"mine", "messages": [{"role":"user","content":"a"}] }'
        assert bodies[2] == '{"model":null,"messages": [{"role":"user","content":"a"}] }'
        rows = await reef.settled(2)
        assert [row["model"] for row in rows][:2] == ["default-model", "mine"]


async def test_unknown_fields_of_a_reply_arrive_as_they_were_sent(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat("hello [[extra]]")
        assert '"x_meta": {"k": 1, "ü": [1, null, 1.5]}' in reply.body.decode()
        row = (await reef.settled())[0]
        assert reef.response_of(row) == reply.body


async def test_headers_of_the_client_go_on_except_credentials_and_connection_headers(tmp_path: Path) -> None:
    sent = {
        "anthropic-beta": "one-2026-01-01,two-2026-02-02",
        "User-Agent": "agent/1",
        "X-Strange": "yes",
        "authorization": "Bearer client-secret",
        "x-api-key": "client-secret",
        "Api-Key": "client-secret",
        "x-goog-api-key": "client-secret",
        "Cookie": "session=client-secret",
        "x-reef-scenario": "mine",
        "connection": "x-strange-hop",
        "x-strange-hop": "1",
        "accept-encoding": "gzip, br",
        "te": "trailers",
    }
    async with serving(tmp_path) as reef:
        await reef.chat("hello", sent)
        seen = reef.seen()[0]["headers"]
        assert seen["anthropic-beta"] == "one-2026-01-01,two-2026-02-02"
        assert seen["user-agent"] == "agent/1"
        assert seen["x-strange"] == "yes"
        assert seen["authorization"] == "Bearer sk-upstream"
        assert seen["accept-encoding"] == "identity"
        dropped = {"x-api-key", "api-key", "x-goog-api-key", "cookie", "x-reef-scenario", "x-strange-hop", "te"}
        assert not dropped & set(seen)
        assert "client-secret" not in reef.log.read_text()


async def test_the_query_string_goes_on_as_it_was_written(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        body = b'{"model":"m","messages":[{"role":"user","content":"a"}]}'
        assert (await reef.send(body, query="?beta=true&x=%2F%20+a")).status == 200
        assert reef.seen()[0]["path"] == "/v1/chat/completions?beta=true&x=%2F%20+a"


@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize("framing", ["", "crlf", "tight", "comments", "lines", "torn", "open"])
async def test_a_stream_arrives_as_it_was_sent_in_every_framing(tmp_path: Path, framing: str, usage: bool) -> None:
    words = f"hello there [[framing {framing}]]" if framing else "hello there"
    async with serving(tmp_path) as reef:
        reply = await reef.chat(words, stream=True, stream_options={"include_usage": usage})
        receipt = reply.headers["x-reef-agent-record-id"]
        assert reply.events[-1] == "[DONE]"
        own = reply.events[-2]
        assert own["reef"] == {"agent_record_id": receipt}
        assert own["choices"] == [] and own["object"] == "chat.completion.chunk"
        assert own["id"] == reply.events[0]["id"]
        # Without reef's own event, or its member of the event with the usage, the bytes are the upstream's.
        ours = b"data: " + json.dumps(own, separators=(",", ":")).encode() + b"\n\n"
        ours = b',"reef":{"agent_record_id":"%s"}' % receipt.encode() if usage else ours
        assert reply.body.count(ours) == 1
        direct = await _direct(reef.engine.base_url, words, usage)
        assert reply.body.replace(ours, b"") == direct.replace(b"fake2", b"fake1").replace(b"id: 2", b"id: 1")
        row = (await reef.settled())[0]
        assert (row["state"], row["finish_reason"], row["answer_preview"]) == (
            "complete",
            "stop",
            "You said: hello there",
        )
        folded = json.loads(reef.response_of(row) or b"")
        assert folded["choices"][0]["message"] == {"role": "assistant", "content": "You said: hello there"}


async def _direct(base_url: str, words: str, usage: bool) -> bytes:
    import aiohttp

    body = {
        "model": "m",
        "messages": [{"role": "user", "content": words}],
        "stream": True,
        "stream_options": {"include_usage": usage},
    }
    async with aiohttp.ClientSession() as session, session.post(f"{base_url}/chat/completions", json=body) as reply:
        return await reply.read()


async def test_overload_and_its_wait_hint_reach_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for status, wait in ((529, "7"), (429, "3")):
            reply = await reef.chat(f"[[status {status} retry-after {wait}]]")
            assert (reply.status, reply.headers["retry-after"]) == (status, wait)
            assert reply.json["error"]["message"] == "scripted error"
        rows = await reef.settled(2)
        assert [(row["state"], row["status"], row["error"]) for row in rows] == [
            ("failed", 529, "scripted error"),
            ("failed", 429, "scripted error"),
        ]
        assert len(reef.seen()) == 2


async def test_a_stream_that_nobody_asked_for_becomes_one_json_reply(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.chat("[[stream anyway]] hello", stream=False)
        assert reply.headers["content-type"] == "application/json"
        assert reply.json["choices"][0]["message"]["content"] == "You said: hello"
        assert (await reef.settled())[0]["state"] == "complete"


async def test_the_model_list_is_the_upstreams(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef, reef.client.get(f"{reef.url}/v1/models") as reply:
        assert [item["id"] for item in (await reply.json())["data"]] == ["fake-model"]
        assert reef.records() == []


async def test_a_body_that_is_no_json_is_refused_in_openais_shape(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for body in (b"{", b"[1]", b"", b"\xff"):
            reply = await reef.send(body)
            assert reply.status == 400
            assert reply.json["error"]["type"] == "invalid_request_error"
        assert reef.seen() == [] and reef.records() == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
async def test_json_that_is_not_in_utf_8_is_refused_and_never_put_together_with_utf_8(
    tmp_path: Path, encoding: str
) -> None:
    body = '{"messages":[{"role":"user","content":"hi"}]}'
    async with serving(tmp_path) as reef:
        reply = await reef.send(body.encode(encoding))
        assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
        assert reef.seen() == []
        # A mark in front of UTF-8 is what some editors write.
        assert (await reef.send(body.encode("utf-8-sig"))).status == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_body_that_is_not_encoded_as_it_says_is_refused_in_openais_shape(tmp_path: Path, encoding: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.send(b"\xff\xffno such thing", {"content-encoding": encoding})
        assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
        assert "encoded" in reply.json["error"]["message"]
        assert reef.seen() == [] and reef.records() == []
        good = gzip.compress(b'{"messages":[{"role":"user","content":"hi"}]}')
        assert (await reef.send(good, {"content-encoding": "gzip"})).status == 200


async def test_a_large_request_is_relayed_and_stored_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number}: \\u00e9 and so on\\n" for number in range(200_000))
    body = f'{{"model":"m","messages":[{{"role":"user","content":"{text}"}},{{"role":"user","content":"last words"}}]}}'
    async with serving(tmp_path) as reef:
        reply = await reef.send(body.encode())
        assert reply.status == 200
        assert reef.seen()[0]["body"] == body
        row = (await reef.settled())[0]
        assert reef.request_of(row) == body.encode()
        assert (row["preview"], row["request_bytes"]) == ("last words", len(body))


async def test_a_long_reply_is_relayed_and_stored_whole(tmp_path: Path) -> None:
    async with serving(tmp_path) as reef:
        for stream in (False, True):
            reply = await reef.chat("[[big 700kb]]", stream=stream)
            assert reply.status == 200
        rows = await reef.settled(2)
        for row in rows:
            stored = json.loads(reef.response_of(row) or b"")
            assert len(stored["choices"][0]["message"]["content"]) == 700 * 1024
