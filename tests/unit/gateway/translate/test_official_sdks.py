"""The official SDKs read every translated reply and stream as they read their own vendor's."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.gateway.translate import fields
from tests.unit.gateway.translate.samples import REPLIES, STREAMS
from tests.unit.gateway.translate.sdk import Answer, anthropic_client, openai_client, raw_stream
from tests.unit.gateway.translate.talk import asked, delta, exchange

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

QUESTION: Any = [{"role": "user", "content": "hi"}]


def answer(client: str, upstream: str, stream: bool) -> Answer:
    """What reef would send to an SDK for the sample reply of an upstream."""
    options = {"stream_options": {"include_usage": True}} if client == CHAT else {}
    found = exchange(client, upstream, asked(client, stream=stream, max_tokens=9, **options))
    if stream:
        bridge = found.bridge()
        return Answer(bridge.feed(raw_stream(upstream, STREAMS[upstream])) + bridge.finish(), "text/event-stream")
    return Answer(json.dumps(found.reply(REPLIES[upstream])).encode(), "application/json")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
def test_the_anthropic_sdk_reads_a_translated_reply(upstream: str, stream: bool) -> None:
    client = anthropic_client(answer(MESSAGES, upstream, stream))
    if stream:
        with client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as events:
            assert "".join(events.text_stream) == "I look."
            message = events.get_final_message()
    else:
        message = client.messages.create(model="m", max_tokens=9, messages=QUESTION)
    anthropic.types.Message.model_validate(message.model_dump())
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.input for block in message.content[2:]] == [{"path": "a"}, {}]
    assert message.content[0].thinking == "hm, let me"
    assert message.stop_reason == "tool_use"
    counts = (message.usage.input_tokens, message.usage.cache_read_input_tokens, message.usage.output_tokens)
    assert counts == (40, 60, 20)


@pytest.mark.parametrize("upstream", [CHAT, MESSAGES])
def test_the_openai_sdk_reads_a_translated_response(upstream: str) -> None:
    client = openai_client(answer(RESPONSES, upstream, False))
    response = client.responses.create(model="m", input="hi")
    openai.types.responses.Response.model_validate(response.model_dump())
    check_response(response)


@pytest.mark.parametrize("upstream", [CHAT, MESSAGES])
def test_the_openai_sdk_reads_a_translated_response_stream(upstream: str) -> None:
    client = openai_client(answer(RESPONSES, upstream, True))
    with client.responses.stream(model="m", input="hi") as events:
        texts = [event.delta for event in events if event.type == "response.output_text.delta"]
        check_response(events.get_final_response())
    assert texts == ["I ", "look."]
    raw = client.responses.create(model="m", input="hi", stream=True)
    kinds = [type(event).model_validate(event.model_dump()).type for event in raw]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"


def check_response(response: Any) -> None:
    """The sample reply as an SDK's object."""
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert response.output_text == "I look."
    assert [item.arguments for item in response.output[2:]] == ['{"path":"a"}', "{}"]
    assert (response.status, response.usage.input_tokens, response.usage.total_tokens) == ("completed", 100, 120)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", [MESSAGES, RESPONSES])
def test_the_openai_sdk_reads_a_translated_completion(upstream: str, stream: bool) -> None:
    client = openai_client(answer(CHAT, upstream, stream))
    if stream:
        with client.chat.completions.stream(
            model="m", messages=QUESTION, stream_options={"include_usage": True}
        ) as events:
            events.until_done()
            completion = events.get_final_completion()
    else:
        completion = client.chat.completions.create(model="m", messages=QUESTION)
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("I look.", "tool_calls")
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert calls == [("a", "read", '{"path":"a"}'), ("b", "list", "{}")]
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (100, 20)


def test_the_sdks_raise_what_an_upstream_reports_in_the_middle() -> None:
    broken = [delta({"content": "a"}), {"error": {"message": "quota exceeded", "type": "rate_limit_error"}}]
    bridge = exchange(MESSAGES, CHAT, asked(MESSAGES, stream=True)).bridge()
    client = anthropic_client(Answer(bridge.feed(raw_stream(CHAT, broken)) + bridge.finish(), "text/event-stream"))
    with pytest.raises(anthropic.APIStatusError, match="quota exceeded"):
        list(client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True))
    bridge = exchange(RESPONSES, CHAT, asked(RESPONSES, stream=True)).bridge()
    client = openai_client(Answer(bridge.feed(raw_stream(CHAT, broken)) + bridge.finish(), "text/event-stream"))
    last = list(client.responses.create(model="m", input="hi", stream=True))[-1]
    assert (last.type, last.response.error.message) == ("response.failed", "quota exceeded")


def test_the_tables_know_every_field_of_the_sdks() -> None:
    chat = openai.types.chat.completion_create_params.CompletionCreateParamsBase
    wanted = (
        (fields.MESSAGES_IN, anthropic.types.message_create_params.MessageCreateParamsBase),
        (fields.RESPONSES_IN, openai.types.responses.response_create_params.ResponseCreateParamsBase),
        (fields.MESSAGES_OUT, chat),
        (fields.RESPONSES_OUT, chat),
    )
    for table, params in wanted:
        known = {*table.plain, *table.shaped, *table.ignored, *table.refused, *table.named}
        assert set(typing.get_type_hints(params)) - known == set()
