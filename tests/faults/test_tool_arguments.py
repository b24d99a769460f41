"""Tool arguments are recorded once and whole wherever they stand; broken ones are relayed untouched and flagged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.fakes.raw_server import DONE, answering, chunk, delta, stream
from tests.unit.gateway.serving import DIALECTS, serving

CUT = '{"path":"a.txt","content":"abc'
REASONS = {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"}


def arguments_of(dialect: str, reply: dict[str, Any]) -> Any:
    """The arguments of the only tool call in a reply."""
    if dialect == "chat":
        calls = reply["choices"][0]["message"]["tool_calls"]
        return calls[0]["function"]["arguments"] if len(calls) == 1 else calls
    if dialect == "responses":
        calls = [item for item in reply["output"] if item["type"] == "function_call"]
        return calls[0]["arguments"] if len(calls) == 1 else calls
    calls = [block for block in reply["content"] if block["type"] == "tool_use"]
    return calls[0]["input"] if len(calls) == 1 else calls


@pytest.mark.parametrize("where", ["done", "last"])
async def test_arguments_only_in_a_closing_event_are_recorded_once(tmp_path: Path, where: str) -> None:
    words = f'[[tool grep {{"pattern":"*.py"}}]] [[arguments {where}]]'
    async with serving(tmp_path) as reef:
        await reef.ask("responses", words, tools=["grep"], stream=True)
        row = (await reef.settled())[0]
        assert arguments_of("responses", reef.stored(row)) == '{"pattern":"*.py"}'
        assert (row["state"], row["answer_preview"]) == ("complete", 'grep({"pattern":"*.py"})')


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_good_arguments_are_not_flagged(tmp_path: Path, dialect: str, stream: bool) -> None:
    async with serving(tmp_path) as reef:
        await reef.ask(dialect, '[[tool grep {"pattern": "*.py"}]]', tools=["grep"], stream=stream)
        row = (await reef.settled())[0]
        found = arguments_of(dialect, reef.stored(row))
        assert (json.loads(found) if isinstance(found, str) else found) == {"pattern": "*.py"}
        assert (row["state"], row["notes_json"], row["trainable"]) == ("complete", None, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_call_cut_at_the_limit_keeps_its_reason_and_is_no_training_row(tmp_path: Path, dialect: str) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, f"[[tool write {CUT}]] [[length]]", tools=["write"], stream=True)
        assert b'tool_calls"' not in reply.body.replace(b'"tool_calls": [', b"").replace(b'"parallel_tool_calls"', b"")
        row = (await reef.settled())[0]
        assert (row["state"], row["finish_reason"], row["trainable"]) == ("complete", REASONS[dialect], 0)
        assert json.loads(row["notes_json"]) == {"invalid_arguments": ["write"]}
        assert arguments_of(dialect, reef.stored(row)) == CUT


@pytest.mark.parametrize("raw", ['{"a":1}{"a":1}', '{"a":1', "7"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_doubled_or_short_arguments_are_relayed_untouched_and_flagged_with_their_text(
    tmp_path: Path, dialect: str, raw: str
) -> None:
    async with serving(tmp_path) as reef:
        reply = await reef.ask(dialect, f"[[tool bash {raw}]]", tools=["bash"], stream=True)
        pieces = {
            "chat": lambda event: (event["choices"][0]["delta"].get("tool_calls") or [{}])[0].get("function", {}),
            "responses": lambda event: (
                {"arguments": event["delta"]} if event["type"].endswith("arguments.delta") else {}
            ),
            "messages": lambda event: {"arguments": (event.get("delta") or {}).get("partial_json", "")},
        }[dialect]
        events = [event for event in reply.events if event != "[DONE]" and event.get("choices") != []]
        assert "".join(pieces(event).get("arguments", "") for event in events) == raw
        row = (await reef.settled())[0]
        assert (row["state"], row["trainable"]) == ("complete", 0)
        assert json.loads(row["notes_json"]) == {"invalid_arguments": ["bash"]}
        stored = arguments_of(dialect, reef.stored(row))
        assert stored == (raw if isinstance(stored, str) else json.loads(raw))


async def test_a_call_behind_an_ordinary_reason_keeps_it_for_the_client_and_in_the_record(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"a":1}'}}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    sent = stream(delta(role="assistant", tool_calls=[call]), chunk(end), DONE)
    async with answering(sent) as address, serving(tmp_path, engine=UpstreamEngine(address, "m")) as reef:
        reply = await reef.ask("chat", "hello", tools=["bash"], stream=True)
        assert b'tool_calls"' not in reply.body.replace(b'"tool_calls": [', b"")
        row = (await reef.settled())[0]
        assert (row["state"], row["finish_reason"], row["trainable"]) == ("complete", "stop", 1)
        assert reef.stored(row)["choices"][0]["finish_reason"] == "stop"
