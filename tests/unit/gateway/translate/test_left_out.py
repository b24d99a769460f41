"""What asks for a manner of answering and has no place at an upstream is left out and named, never in silence."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.gateway.translate import Compat
from tests.unit.gateway.translate.talk import asked, exchange, sent

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
BUDGET = {"type": "enabled", "budget_tokens": 8000}
OFF = {"type": "disabled"}
TAKES = Compat(effort=True)


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize(
    ("client", "fields", "effort", "left", "still_left"),
    [
        (MESSAGES, {"output_config": {"effort": "high"}}, "high", ["output_config.effort"], []),
        (
            MESSAGES,
            {"output_config": {"effort": "low"}, "thinking": ADAPTIVE},
            "low",
            ["output_config.effort", "thinking"],
            [],
        ),
        (MESSAGES, {"thinking": ADAPTIVE}, None, ["thinking"], ["thinking"]),
        (MESSAGES, {"thinking": BUDGET}, "medium", ["thinking"], []),
        (MESSAGES, {"thinking": OFF}, None, ["thinking"], ["thinking"]),
        (RESPONSES, {"reasoning": {"effort": "high", "summary": "auto"}}, "high", ["reasoning.effort"], []),
        (RESPONSES, {"reasoning": {"effort": "absurd"}}, None, ["reasoning.effort"], ["reasoning.effort"]),
    ],
)
def test_the_effort_that_agents_send_is_carried_where_the_upstream_takes_it_and_named_where_not(
    client: str, upstream: str, fields: dict[str, Any], effort: str | None, left: list[str], still_left: list[str]
) -> None:
    if client == upstream:
        return
    request = asked(client, **fields)
    plain = exchange(client, upstream, request)
    assert (effort_in(upstream, plain.body), list(plain.fields_left)) == (None, left)
    takes = exchange(client, upstream, request, TAKES)
    assert (effort_in(upstream, takes.body), list(takes.fields_left)) == (effort, still_left)


def effort_in(upstream: str, body: dict[str, Any]) -> Any:
    """The effort that a translated request names."""
    if upstream == CHAT:
        return body.get("reasoning_effort")
    return body.get("reasoning" if upstream == RESPONSES else "output_config", {}).get("effort")


def test_a_word_for_the_effort_that_the_upstream_does_not_know_is_left_out_and_named() -> None:
    request = asked(MESSAGES, output_config={"effort": "max"})
    found = exchange(MESSAGES, CHAT, request, TAKES)
    assert "reasoning_effort" not in found.body and found.fields_left == ("output_config.effort",)
    odd = exchange(CHAT, MESSAGES, asked(CHAT, reasoning_effort="absurd"))
    assert "output_config" not in odd.body and odd.fields_left == ("reasoning_effort",)


def test_a_chat_clients_own_effort_is_always_carried() -> None:
    assert sent(CHAT, RESPONSES, asked(CHAT, reasoning_effort="high"))["reasoning"] == {"effort": "high"}
    assert sent(CHAT, MESSAGES, asked(CHAT, reasoning_effort="none"))["thinking"] == {"type": "disabled"}


def test_the_note_of_a_header_is_ascii_and_at_most_a_kilobyte_and_says_that_it_is_cut() -> None:
    names = {f"{number}é" * 20: 1 for number in range(60)}
    found = exchange(MESSAGES, CHAT, asked(MESSAGES, **names))
    note = found.note()
    assert len(found.fields_left) == 60 and note.isascii() and 900 < len(note) <= 1024 + len(",...")
    whole, last = note.removeprefix("messages to chat; fields-left-out=").split(",")[:-1], note[-4:]
    assert last == ",..." and [unquote(name) for name in whole] == [name[:80] for name in names][: len(whole)]
    assert len(exchange(MESSAGES, CHAT, asked(MESSAGES, a=1)).note()) < 50


def test_verbosity_is_left_out_and_named_where_the_upstream_has_no_place_for_it() -> None:
    found = exchange(RESPONSES, MESSAGES, asked(RESPONSES, text={"verbosity": "low"}))
    assert (found.fields_left, found.note()) == (
        ("text.verbosity",),
        "responses to messages; fields-left-out=text.verbosity",
    )
    assert exchange(CHAT, MESSAGES, asked(CHAT, verbosity="high")).fields_left == ("verbosity",)
    assert exchange(RESPONSES, CHAT, asked(RESPONSES, text={"verbosity": "low"})).body["verbosity"] == "low"


def test_what_include_asks_for_beside_sealed_reasoning_is_named() -> None:
    asks = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    found = exchange(RESPONSES, CHAT, asked(RESPONSES, include=asks, reasoning={"context": "all", "mode": None}))
    assert found.fields_left == ("include[message.output_text.logprobs]", "reasoning.context")


def test_the_cache_mark_of_a_chat_clients_image_reaches_anthropic_and_no_other_vendor() -> None:
    mark = {"type": "ephemeral"}
    image = {"type": "image_url", "image_url": {"url": "https://h/a.png"}, "cache_control": mark}
    sound = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}, "cache_control": mark}
    request = asked(CHAT) | {"messages": [{"role": "user", "content": [image]}]}
    assert sent(CHAT, MESSAGES, request)["messages"][0]["content"][0]["cache_control"] == mark
    request["messages"][0]["content"].append(sound)
    items = sent(CHAT, RESPONSES, request)["input"][0]["content"]
    assert [set(item) for item in items] == [{"type", "image_url", "detail"}, {"type", "input_audio"}]
