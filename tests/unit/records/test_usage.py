"""What was used is counted once, priced where a price is known, and counted by tool from the replies themselves."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from reef.errors import InvalidInput
from reef.records.prices import Prices
from reef.records.reader import Reader
from reef.records.usage import Tools, called
from reef.records.writer import Writer
from tests.unit.records.calling import opened, settled

CHAT = {"choices": [{"message": {"tool_calls": [{"function": {"name": "edit"}}, {"function": {"name": "bash"}}]}}]}
MESSAGES = {"content": [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "bash", "input": {}}]}
RESPONSES = {"output": [{"type": "function_call", "name": "edit"}, {"type": "web_search_call"}, {"type": "message"}]}


def call(writer: Writer, prompt: int | None = 100, out: int | None = 10, **fields: Any) -> str:
    ended = {name: fields.pop(name) for name in ("state", "duration_ms", "cached_tokens", "response") if name in fields}
    receipt = opened(writer, **fields)
    state = ended.pop("state", "complete")
    settled(writer, receipt, state, prompt_tokens=prompt, completion_tokens=out, **ended)
    return receipt


def by(reader: Reader, what: str, **more: Any) -> dict[str, Any]:
    return {row["key"]: row for row in reader.usage(what, more.pop("own", {}), **more)["rows"]}


def test_tokens_and_costs_are_summed_by_model_with_the_price_of_each(writer: Writer, reader: Reader) -> None:
    call(writer, 1_000_000, 100_000, model="claude-sonnet-4-5-20250929", cached_tokens=400_000)
    call(writer, 0, 100_000, model="anthropic/claude-sonnet-4-5")
    call(writer, 500, 5, model="nobody-knows-it")
    call(writer, None, None, model="nobody-knows-it", state="failed")
    call(writer, 900, 9, model="smollm2", engine="embedded")
    found = by(reader, "model")
    first = found["claude-sonnet-4-5-20250929"]
    assert first["cost"] == pytest.approx(0.6 * 3 + 0.4 * 0.3 + 0.1 * 15)
    assert (first["prompt_tokens"], first["cached_tokens"], first["completion_tokens"]) == (1_000_000, 400_000, 100_000)
    assert found["anthropic/claude-sonnet-4-5"]["cost"] == pytest.approx(1.5)
    unknown = found["nobody-knows-it"]
    assert (unknown["cost"], unknown["unpriced_calls"], unknown["calls"], unknown["failed"]) == (None, 1, 2, 1)
    assert (found["smollm2"]["cost"], found["smollm2"]["unpriced_calls"]) == (0, 0)
    total = reader.usage("model", {})["total"]
    assert (total["calls"], total["unpriced_calls"]) == (5, 1)
    assert total["cost"] == pytest.approx(sum(row["cost"] or 0 for row in found.values()))


def test_the_persons_own_prices_go_before_the_table(writer: Writer, reader: Reader) -> None:
    call(writer, 1_000_000, 0, model="house-model")
    call(writer, 1_000_000, 0, model="gpt-5.4")
    own = {"house-model": {"input": 7.0, "output": 1.0}, "gpt-5.4": {"input": 0.5, "output": 1.0}}
    found = by(reader, "model", own=own)
    assert (found["house-model"]["cost"], found["gpt-5.4"]["cost"]) == (7.0, 0.5)


def test_usage_is_told_apart_by_agent_version_and_day_and_within_a_scenario_and_a_time(
    writer: Writer, reader: Reader
) -> None:
    call(writer, adapter="pi", version=2, started_at="2026-03-01T10:00:00.000Z", scenario="coding")
    call(writer, adapter="pi", version=3, started_at="2026-03-02T10:00:00.000Z", scenario="coding")
    call(writer, started_at="2026-03-02T11:00:00.000Z")
    assert {key: row["calls"] for key, row in by(reader, "agent").items()} == {"pi": 2, "other programs": 1}
    assert set(by(reader, "version")) == {"coding v2", "coding v3", "default"}
    assert list(by(reader, "day")) == ["2026-03-01", "2026-03-02"]
    assert set(by(reader, "agent", since="2026-03-02T10:30:00.000Z")) == {"other programs"}
    assert reader.usage("day", {}, scenario="CODING")["total"]["calls"] == 2


def test_half_of_the_calls_are_no_slower_than_p50_and_95_of_100_than_p95(writer: Writer, reader: Reader) -> None:
    for number in range(1, 101):
        call(writer, model="m", duration_ms=float(number))
    call(writer, model="m")
    call(writer, model="one", duration_ms=7.0)
    found = by(reader, "model")
    assert (found["m"]["p50_ms"], found["m"]["p95_ms"]) == (50.0, 95.0)
    assert (found["one"]["p50_ms"], found["one"]["p95_ms"]) == (7.0, 7.0)


@pytest.mark.parametrize(
    ("reply", "names"), [(CHAT, ["edit", "bash"]), (MESSAGES, ["bash"]), (RESPONSES, ["edit", "web_search"])]
)
def test_tool_calls_are_read_in_every_dialect(reply: dict[str, Any], names: list[str]) -> None:
    assert called(json.dumps(reply).encode()) == names


@pytest.mark.parametrize(
    "reply",
    [b"", b"no json", b"[]", b'{"choices": 3}', b'{"choices": [{"message": null}]}', b'{"content": [1, null, "x"]}',
     b'{"output": [{"type": "function_call", "name": {"a": 1}}]}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_reply_calls_no_tool(reply: bytes) -> None:
    assert called(reply) == []


def test_tools_are_counted_in_the_newest_replies_slice_by_slice(writer: Writer, reader: Reader) -> None:
    for number in range(230):
        call(writer, response=json.dumps(CHAT if number % 2 else MESSAGES).encode())
    found = reader.usage("tool", {})
    assert found["rows"] == [
        {"key": "bash", "calls": 230, "replies": 230},
        {"key": "edit", "calls": 115, "replies": 115},
    ]
    assert found["replies_read"] == 230
    tools = Tools(most=150)
    while reader.query(tools.read):
        pass
    assert tools.read_replies == 150


def test_usage_by_anything_else_is_refused_with_what_there_is(reader: Reader) -> None:
    with pytest.raises(InvalidInput, match="agent, model, version, tool, day"):
        reader.usage("colour", {})


def test_the_price_table_is_dated_and_holds_the_models_of_every_large_vendor() -> None:
    prices = Prices()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", prices.checked)
    for model in ("claude-opus-4-8", "gpt-5.4-mini", "gemini-3.5-flash", "deepseek-v4-pro", "grok-4.5", "glm-5"):
        price = prices.of(model)
        assert price is not None and 0 < price.input <= price.output and (price.cached or 0) <= price.input
    assert prices.of("gpt-5.4-mini-2026-03-17") == prices.of("openai/gpt-5.4-mini") == prices.of("gpt-5.4-mini")
    assert prices.of("gpt-5.4-mini-of-mine") is None
    assert prices.of(None) is None


def test_the_settings_hold_own_prices_with_the_models_name_as_it_is_written(paths: Any) -> None:
    from reef.config import load
    from reef.errors import ConfigError

    paths.config_file.write_text("usage:\n  prices:\n    my_model.v1: {input: 1, output: 2}\n")
    assert load(paths=paths).settings.usage.prices == {"my_model.v1": {"input": 1.0, "output": 2.0}}
    paths.config_file.write_text("usage:\n  prices:\n    m: {inptu: 1}\n")
    with pytest.raises(ConfigError, match="usage"):
        load(paths=paths)
