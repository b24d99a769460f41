"""What holds for every conversation and every stream, in all directions."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.gateway.chat_fold import ChatFold
from reef.gateway.messages_fold import MessagesFold
from reef.gateway.responses_fold import ResponsesFold
from reef.gateway.translate import frame
from reef.gateway.translate.reply import Usage
from reef.gateway.translate.reply_from_chat import usage_of as chat_usage
from reef.gateway.translate.reply_from_messages import usage_of as messages_usage
from reef.gateway.translate.reply_from_responses import usage_of as responses_usage
from tests.unit.gateway.translate.samples import REPLIES, STREAMS
from tests.unit.gateway.translate.talk import asked, delta, exchange, from_chat, piece, sent, told, usage

DIALECTS = (CHAT, MESSAGES, RESPONSES)
PAIRS = [(client, upstream) for client in DIALECTS for upstream in DIALECTS if client != upstream]
FOLDS = {CHAT: ChatFold, MESSAGES: MessagesFold, RESPONSES: ResponsesFold}
USAGE_OF = {CHAT: chat_usage, MESSAGES: messages_usage, RESPONSES: responses_usage}
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(lambda text: text.strip())
Json = dict[str, Any]
QUIET = settings(max_examples=60, deadline=None)


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Turns of a messages client: questions, answers with calls, results in any order, with and without text."""
    turns: list[Json] = [{"role": "user", "content": draw(TEXTS)}]
    number = 0
    for _ in range(draw(st.integers(0, 4))):
        calls = [f"t{number + index}" for index in range(draw(st.integers(0, 3)))]
        number += len(calls)
        said = [{"type": "text", "text": draw(TEXTS)}] if not calls or draw(st.booleans()) else []
        uses = [
            {"type": "tool_use", "id": one, "name": "f", "input": draw(st.dictionaries(TEXTS, st.integers()))}
            for one in calls
        ]
        turns.append({"role": "assistant", "content": [*said, *uses]})
        parts: list[Json] = [
            {"type": "tool_result", "tool_use_id": one, "content": draw(TEXTS)} for one in draw(st.permutations(calls))
        ]
        if not calls or draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), {"type": "text", "text": draw(TEXTS)})
        turns.append({"role": "user", "content": parts})
    return turns


def said(turns: list[Json]) -> list[tuple[str, str, str]]:
    """What a messages conversation says: (who, kind, text), results before what else stands in their turn."""
    found = []
    for turn in turns:
        content = turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        calls = [block for block in blocks if block["type"] == "tool_result"]
        for block in [*sorted(calls, key=lambda one: one["tool_use_id"]), *blocks]:
            if block["type"] == "text":
                found.append((turn["role"], "text", block["text"]))
            elif block["type"] == "tool_use":
                found.append((turn["role"], block["id"], json.dumps(block["input"], sort_keys=True)))
            elif block["type"] == "tool_result" and (turn["role"], block["tool_use_id"], block["content"]) not in found:
                found.append((turn["role"], block["tool_use_id"], block["content"]))
    return found


@QUIET
@given(turns=conversations())
def test_a_conversation_survives_a_round_trip_through_chat(turns: list[Json]) -> None:
    there = sent(MESSAGES, CHAT, {"max_tokens": 9, "system": "be brief", "messages": turns})
    back = sent(CHAT, MESSAGES, there)
    assert said(back["messages"]) == said(turns)
    assert [block["text"] for block in back["system"]] == ["be brief"]


@QUIET
@given(turns=conversations())
def test_a_conversation_survives_a_round_trip_through_responses(turns: list[Json]) -> None:
    there = sent(MESSAGES, RESPONSES, {"max_tokens": 9, "system": "be brief", "messages": turns})
    back = sent(RESPONSES, MESSAGES, there)
    assert said(back["messages"]) == said(turns)
    assert [block["text"] for block in back["system"]] == ["be brief"]


@QUIET
@given(turns=conversations(), client=st.sampled_from([MESSAGES, RESPONSES]))
def test_every_result_follows_its_call_once_and_in_order(turns: list[Json], client: str) -> None:
    body = {"max_tokens": 9, "messages": turns}
    if client == RESPONSES:
        items = sent(MESSAGES, RESPONSES, body)["input"]
        messages = sent(RESPONSES, CHAT, {"input": items})["messages"]
    else:
        messages = sent(MESSAGES, CHAT, body)["messages"]
    place = 0
    while place < len(messages):
        wanted = [call["id"] for call in messages[place].get("tool_calls", ())]
        place += 1
        got = [message.get("tool_call_id") for message in messages[place : place + len(wanted)]]
        assert got == wanted
        place += len(wanted)
        assert place == len(messages) or messages[place]["role"] != "tool"


@st.composite
def mixed_calls(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[Json]]:
    """Tool calls, and the pieces of their arguments in some order, each call's own in order."""
    names = [f"f{index}" for index in range(draw(st.integers(1, 4)))]
    calls = [(name, json.dumps(draw(st.dictionaries(TEXTS, TEXTS, max_size=3)))) for name in names]
    queues = []
    for index, (name, arguments) in enumerate(calls):
        cuts = sorted(draw(st.sets(st.integers(0, len(arguments)), max_size=4)))
        pieces = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, len(arguments)], strict=True)]
        queues.append([piece(index, "", f"id{index}", name), *[piece(index, text) for text in pieces]])
    order = [queue.pop(0) for queue in queues]
    while any(queues):
        order.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return calls, order


@QUIET
@given(mixed=mixed_calls(), client=st.sampled_from([MESSAGES, RESPONSES]))
def test_pieces_of_arguments_in_any_order_stay_with_their_calls(
    mixed: tuple[list[tuple[str, str]], list[Json]], client: str
) -> None:
    calls, chunks = mixed
    events = from_chat(client, *chunks, delta({}, "tool_calls"), usage(1, 2))
    fold = FOLDS[client]()
    for event in events:
        fold.feed(frame(client, event))
    reply = json.loads(fold.facts(finished=True).body or b"")
    if client == MESSAGES:
        found = [(block["name"], block["input"]) for block in reply["content"]]
    else:
        found = [(item["name"], json.loads(item["arguments"])) for item in reply["output"]]
    assert found == [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_stream_folds_into_the_same_reply_as_a_whole_one(client: str, upstream: str) -> None:
    request = asked(client, stream=True, max_tokens=9, stream_options={"include_usage": True})
    whole = exchange(client, upstream, request).reply(REPLIES[upstream])
    fold = FOLDS[client]()
    for event in told(client, upstream, STREAMS[upstream], request):
        fold.feed(frame(client, event))
    folded = json.loads(fold.facts(finished=True).body or b"")
    for reply in (whole, folded):
        for choice in reply.get("choices", ()):
            choice.pop("logprobs", None)
            choice["message"].pop("refusal", None)
    assert folded == whole


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_everything_in_a_reply_reaches_the_client(client: str, upstream: str) -> None:
    shown = json.dumps(exchange(client, upstream, asked(client)).reply(REPLIES[upstream]))
    for part in ("hm, let me", "I look.", '"read"', '"list"', '"a"', '"b"', "path"):
        assert part in shown


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_same_bytes_come_out_however_the_stream_is_cut(client: str, upstream: str, seed: int) -> None:
    request = asked(client, stream=True, max_tokens=9)
    raw = b"".join(frame(upstream, event) for event in STREAMS[upstream])
    raw += b"data: [DONE]\n\n" if upstream == CHAT else b""
    wanted = b"".join(frame(client, event) for event in told(client, upstream, STREAMS[upstream], request))
    wanted += b"data: [DONE]\n\n" if client == CHAT else b""
    bridge = exchange(client, upstream, request).bridge()
    chance = random.Random(seed)
    out, place = b"", 0
    while place < len(raw):
        size = chance.randint(1, 400)
        out += bridge.feed(raw[place : place + size])
        place += size
    assert out + bridge.finish() == wanted
    assert bridge.ended and bridge.failure is None


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@QUIET
@given(
    counts=st.builds(
        Usage, *[st.integers(0, 10**6)] * 2, cached=st.just(0), written=st.just(0), reasoning=st.integers(0, 99)
    ),
    cached=st.integers(0, 10**5),
)
def test_usage_is_kept(client: str, upstream: str, counts: Usage, cached: int) -> None:
    counts.input += cached
    counts.cached = cached
    reply = {**REPLIES[upstream]}
    if upstream == MESSAGES:
        counts.reasoning = 0
        reply["usage"] = {
            "input_tokens": counts.input - cached,
            "cache_read_input_tokens": cached,
            "output_tokens": counts.output,
        }
    elif upstream == CHAT:
        reply["usage"] = usage(counts.input, counts.output, cached, counts.reasoning)["usage"]
    else:
        reply["usage"] = {
            "input_tokens": counts.input,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": counts.output,
            "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        }
    found = USAGE_OF[client](exchange(client, upstream, asked(client)).reply(reply)["usage"])
    if client == MESSAGES:
        counts.reasoning = 0
    assert found == counts
