"""The vendors' own Python clients get from reef what they get from the model server itself, and through a translation
what they can read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.serving import Serving, serving

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

CALL = '[[reasoning hm]] [[tool bash {"command": "ls"}]] list'
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
RESPONSES_TOOLS: Any = [{"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False}]
MESSAGES_TOOLS: Any = [{"name": "bash", "input_schema": {"type": "object"}}]
Ask = Callable[[str, bool], Any]
"""Asks the server at an address, streaming or not, and returns what the client made of the reply."""


def plain(found: Any) -> Any:
    """What a client's object holds, without what differs from call to call."""
    text = found.model_dump_json(exclude={"_request_id"})
    return re.sub(r"(fake|call_|toolu_|msg_|fc_|rs_)\d+", r"\1N", text)


def chat(url: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    question: Any = [{"role": "user", "content": CALL}]
    if not stream:
        return client.chat.completions.create(model="m", messages=question, tools=CHAT_TOOLS)
    with client.chat.completions.stream(model="m", messages=question, tools=CHAT_TOOLS) as events:
        return events.get_final_completion()


def responses(url: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    if not stream:
        return client.responses.create(model="m", input=CALL, tools=RESPONSES_TOOLS)
    with client.responses.stream(model="m", input=CALL, tools=RESPONSES_TOOLS) as events:
        return events.get_final_response()


def messages(url: str, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    question: Any = [{"role": "user", "content": CALL}]
    if not stream:
        return client.messages.create(model="m", max_tokens=99, messages=question, tools=MESSAGES_TOOLS)
    with client.messages.stream(model="m", max_tokens=99, messages=question, tools=MESSAGES_TOOLS) as events:
        return events.get_final_message()


ASKS: dict[str, Ask] = {"chat": chat, "responses": responses, "messages": messages}


def upstream_of(reef: Serving) -> str:
    """The address of the model server behind reef."""
    return reef.engine.base_url.removesuffix("/v1")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ASKS)
async def test_a_client_makes_the_same_objects_of_a_reply_through_reef(
    tmp_path: Path, dialect: str, stream: bool
) -> None:
    async with serving(tmp_path, known=False) as reef:
        direct = await asyncio.to_thread(ASKS[dialect], upstream_of(reef), stream)
        through = await asyncio.to_thread(ASKS[dialect], reef.url, stream)
        marked = re.sub(r',?"reef":\{[^}]*\}', "", plain(through))
        assert marked == plain(direct)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("dialect", "upstream"), [("messages", "chat"), ("responses", "chat"), ("chat", "messages"), ("chat", "responses")]
)
async def test_a_client_reads_a_translated_reply(tmp_path: Path, dialect: str, upstream: str, stream: bool) -> None:
    async with serving(tmp_path, speaks=(upstream,), known=False) as reef:
        found = await asyncio.to_thread(ASKS[dialect], reef.url, stream)
        if dialect == "chat":
            call = found.choices[0].message.tool_calls[0].function
            assert (call.name, call.arguments.replace(" ", "")) == ("bash", '{"command":"ls"}')
        elif dialect == "messages":
            assert [(block.name, block.input) for block in found.content if block.type == "tool_use"] == [
                ("bash", {"command": "ls"})
            ]
        else:
            item = next(item for item in found.output if item.type == "function_call")
            assert (item.name, item.arguments.replace(" ", "")) == ("bash", '{"command":"ls"}')


@pytest.mark.parametrize("speaks", [("chat", "responses", "messages"), ("chat",), ("messages",)])
async def test_an_error_is_the_clients_own_exception(tmp_path: Path, speaks: tuple[str, ...]) -> None:
    async with serving(tmp_path, speaks=speaks, known=False) as reef:

        def ask() -> None:
            for client, create in (
                (openai.OpenAI(base_url=reef.url + "/v1", api_key="k", max_retries=0), "chat"),
                (anthropic.Anthropic(base_url=reef.url, api_key="k", max_retries=0), "messages"),
            ):
                vendor: Any = openai if create == "chat" else anthropic
                route = client.chat.completions if create == "chat" else client.messages
                question: Any = [{"role": "user", "content": "[[status 429 retry-after 3]]"}]
                with pytest.raises(vendor.RateLimitError, match="scripted error") as caught:
                    route.create(model="m", max_tokens=9, messages=question)
                assert caught.value.response.headers["retry-after"] == "3"

        await asyncio.to_thread(ask)
