"""Real agents finish a tool session through reef, in their own wire format and through a translation of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.conftest import Served
from tests.agents.pointing import MODEL, WRAPPED

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
FINISHED = {"chat": ("tool_calls", "stop"), "responses": ("completed",) * 2, "messages": ("tool_use", "end_turn")}
"""Finish reasons of the turn that calls a tool and of the one that ends the session."""
SAID = "made by the agent"
THOUGHT = "a shell can do that"
PROMPT = f"Make the file. [[shell echo {SAID} | tee proof.txt]] [[reasoning {THOUGHT}]]"

CASES = [
    ("pi", "chat", "chat"),
    ("pi", "chat", "messages"),
    ("pi", "responses", "responses"),
    ("pi", "responses", "chat"),
    ("pi", "messages", "messages"),
    ("pi", "messages", "chat"),
    ("claude", "messages", "messages"),
    ("claude", "messages", "chat"),
    ("claude", "messages", "responses"),
    ("codex", "responses", "responses"),
    ("codex", "responses", "chat"),
    ("codex", "responses", "messages"),
    ("opencode", "chat", "chat"),
    ("opencode", "responses", "chat"),
    ("opencode", "messages", "chat"),
]
"""An agent, the wire format that it is told to speak, and the only one that the model server speaks."""


@pytest.mark.parametrize("agent,dialect,upstream", CASES)
def test_an_agent_finishes_a_tool_session_and_leaves_its_records(
    serving: Callable[[str], Served], agent: str, dialect: str, upstream: str
) -> None:
    served, scenario = serving(upstream), f"{agent}-{dialect}-{upstream}"
    before = len(served.requests())
    ran = served.run(agent, dialect, scenario, PROMPT)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert f"{SAID}\n" in ran.stdout
    assert (served.project(scenario) / "proof.txt").read_text() == f"{SAID}\n"

    sent = served.requests()[before:]
    assert {entry["path"].partition("?")[0] for entry in sent} == {ROUTES[upstream]}
    last = _bodies(sent)[-1]
    assert THOUGHT in json.dumps(_replies_in(last))
    if upstream == "chat" != dialect:
        assert [message["role"] for message in _said(last)] == ["system", "user", "assistant", "tool"]
    records = served.home.json(f"reef records list -s {scenario}")[::-1]
    assert len(records) == len(sent)
    turns = [record for record in records if not record["side_call"]]
    _expect_two_turns(turns, dialect, "agent" if agent in WRAPPED else "program")
    # Everything else is a title, which only OpenCode asks for; it belongs to the same conversation.
    beside = [record for record in records if record["side_call"]]
    assert len(beside) == (1 if agent == "opencode" else 0)
    assert all(record["session"] == turns[0]["session"] for record in beside)
    assert turns[0]["session"] == (_wrapped(served, scenario) or _session(sent, agent, dialect))
    if upstream == dialect:
        # Nothing of what the agent said is changed on its way.
        for record, entry in zip(records, sent, strict=True):
            asked = served.home.ok(f"reef records show {record['agent_record_id']} --request")
            assert asked.rstrip("\n") == entry["body"]


def _bodies(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(entry["body"]) for entry in sent]


def _said(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The conversation in a request, in any wire format."""
    found: list[dict[str, Any]] = body.get("messages") or body["input"]
    return found


def _replies_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What a request repeats of the model's own replies."""
    others = ("user", "system", "developer", "tool")
    return [message for message in _said(body) if message.get("role") not in others]


def _expect_two_turns(turns: list[dict[str, Any]], dialect: str, source: str) -> None:
    """A turn that calls the shell, and one that says what it said."""
    assert [turn["finish_reason"] for turn in turns] == list(FINISHED[dialect])
    for turn in turns:
        told = (turn["dialect"], turn["model"], turn["state"], turn["status"], turn["error"])
        assert told == (dialect, MODEL, "complete", 200, None)
        assert turn["route"].endswith(ROUTES[dialect])
        assert turn["streaming"] and turn["source"] == source
        # The scripted server counts no tools, and most of what Claude Code sends is tools.
        assert not turn["prompt_cut"] or turn["adapter"] == "claude"
        assert turn["prompt_tokens"] > turn["cached_tokens"] > 0 and turn["completion_tokens"] > 0
        assert turn["preview"].strip('"') == PROMPT
    assert "tee proof.txt" in turns[0]["answer_preview"]
    assert SAID in turns[1]["answer_preview"]
    assert turns[0]["session"] == turns[1]["session"]


def _wrapped(served: Served, scenario: str) -> str | None:
    """The key of the one session that a wrapper opened; None without a wrapper."""
    rows = [row for row in served.home.json(f"reef sessions list -s {scenario}") if row["adapter"]]
    assert len(rows) <= 1
    return rows[0]["key"] if rows else None


def _session(sent: list[dict[str, Any]], agent: str, dialect: str) -> str | None:
    """The name that the agent itself gave to its session, as its requests say it."""
    headers, body = sent[-1]["headers"], json.loads(sent[-1]["body"])
    if agent == "pi":
        return headers.get({"chat": "session_id", "responses": "session-id"}.get(dialect, ""))
    assert (agent, body["model"]) == ("opencode", MODEL)
    return str(headers["x-session-id"])


@pytest.mark.parametrize("upstream", ["messages", "chat"])
def test_claude_code_keeps_the_receipts_in_its_own_transcript(serving: Callable[[str], Served], upstream: str) -> None:
    served, scenario = serving(upstream), f"claude-receipts-{upstream}"
    assert served.run("claude", "messages", scenario, PROMPT).returncode == 0
    (file,) = (served.home.data / "harness" / scenario / "claude" / "home").glob("projects/*/*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = {line["requestId"] for line in lines if line["type"] == "assistant"}
    assert kept == {record["agent_record_id"] for record in served.home.json(f"reef records list -s {scenario}")}


@pytest.mark.parametrize("upstream", ["messages", "chat", "responses"])
def test_claude_code_finds_a_tool_that_it_holds_back(serving: Callable[[str], Served], upstream: str) -> None:
    served, scenario = serving(upstream), f"claude-search-{upstream}"
    before = len(served.requests())
    wanted = json.dumps({"query": "select:WebFetch", "max_results": 5})
    # It holds tools back where its makers' own fields may be sent.
    fields = ["--settings", json.dumps({"env": {"CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": ""}})]
    ran = served.run("claude", "messages", scenario, f"Look it up. [[tool ToolSearch {wanted}]]", more=fields)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    asked = _bodies(served.requests()[before:])
    offered = [{tool.get("function", tool)["name"] for tool in body["tools"]} for body in asked]
    assert offered[1] - offered[0] == {"WebFetch"} and offered[0] - offered[1] == set()
    # The agent asks again with every tool it has where a server refuses what its search has found.
    records = served.home.json(f"reef records list -s {scenario}")
    assert [record["status"] for record in records] == [200, 200]


@pytest.mark.parametrize(
    "agent,dialect,upstream",
    [
        ("pi", "chat", "messages"),
        ("claude", "messages", "chat"),
        ("codex", "responses", "chat"),
        ("opencode", "messages", "chat"),
    ],
)
def test_a_session_that_was_translated_goes_on_in_another_run_of_the_agent(
    serving: Callable[[str], Served], agent: str, dialect: str, upstream: str
) -> None:
    served, scenario = serving(upstream), f"{agent}-again-{upstream}"
    before = len(served.requests())
    assert served.run(agent, dialect, scenario, PROMPT).returncode == 0
    ran = served.run(agent, dialect, scenario, "Now fail. [[shell echo so it failed; exit 3]]", again=True)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    records = served.home.json(f"reef records list -s {scenario}")[::-1]
    turns = [record for record in records if not record["side_call"]]
    assert [turn["finish_reason"] for turn in turns] == list(FINISHED[dialect]) * 2
    # A run of a wrapper is a session of reef's, whatever session the agent goes on with.
    assert len({turn["session"] for turn in turns}) == (2 if agent in WRAPPED else 1) and turns[0]["session"]
    # A translation that told one turn differently each time would cost a local engine its prefix cache.
    said = [_said(body) for body in _bodies(served.requests()[before:]) if body.get("tools")]
    assert len(said) == 4
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(said))
    assert "so it failed" in json.dumps(said[-1][-1])
