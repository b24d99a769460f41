"""`reef records search` and the filters of `reef records list`, with the daemon and without."""

from __future__ import annotations

import time

import httpx

from tests.cli.conftest import Live


def searched(live: Live, *arguments: str) -> list[str]:
    """The receipts that are found, once everything is in the index."""
    deadline = time.monotonic() + 20
    while (answer := live.json("records", "search", *arguments))["pending"]:
        assert time.monotonic() < deadline
    return [row["agent_record_id"] for row in answer["records"]]


def test_a_search_finds_what_was_said_and_shows_the_line_around_it(live: Live) -> None:
    receipt = live.chat("where is the corkscrew, please?", "found")
    assert searched(live, "corkscrew", "-s", "found") == searched(live, "request:cork*", "-s", "found") == [receipt]
    assert searched(live, '"the corkscrew"', "-s", "found") == [receipt]
    assert searched(live, "corkscrew", "-s", "found", "--since", "2d", "--model", "fake*") == [receipt]
    told = live.reef("records", "search", "corkscrew", "-s", "found")
    assert receipt in told.out and "where is the corkscrew, please?" in told.out and told.status == 0
    _, seen = live.on_terminal("records", "search", "corkscrew", "-s", "found", env={"NO_COLOR": "1"})
    assert max(len(line) for line in seen.splitlines()) <= 80
    nothing = live.reef("records", "search", '"(((', "AND", "-s", "found")
    assert (nothing.status, nothing.out) == (0, "") and "nothing was found" in nothing.err


def test_a_list_is_narrowed_by_rating_model_age_and_failure(live: Live) -> None:
    bad, other = live.chat("one", "narrowed"), live.chat("two", "narrowed")
    assert live.reef("report", bad, "--score", "-1", "-s", "narrowed").status == 0

    def listed(*arguments: str) -> list[str]:
        return [row["agent_record_id"] for row in live.json("records", "list", "-s", "narrowed", *arguments)]

    assert listed("--score", "<0") == listed("--score=-1") == [bad]
    assert listed("--since", "1h") == listed("--model", "FAKE-MODEL") == [other, bad]
    assert listed("--failed") == listed("--cut") == listed("--since", "2999-01-01") == []
    assert "no record is like that" in live.reef("records", "list", "-s", "narrowed", "--failed").err
    wrong = live.reef("records", "list", "--score", "good")
    assert (wrong.status, "is not a score" in wrong.err) == (1, True)


def test_a_session_that_only_calls_name_is_shown_as_one_conversation(live: Live) -> None:
    key = "my run/1"
    for text in ("what is it", "why"):
        body = {"model": "fake-model", "messages": [{"role": "user", "content": f"{text} [[say because {text}]]"}]}
        headers = {"x-reef-scenario": "talked", "x-reef-session": key}
        reply = httpx.post(f"{live.url}/v1/chat/completions", json=body, headers=headers, timeout=30)
    receipt = reply.headers["x-reef-agent-record-id"]
    assert live.reef("report", receipt, "--score", "1", "-s", "talked").status == 0
    row = live.json("sessions", "list", "-s", "talked")[0]
    assert (row["key"], row["id"], row["calls"], row["kind"]) == (key, None, 2, "calls")
    shown = live.reef("sessions", "show", key, "-s", "talked")
    assert shown.status == 0, shown.err
    assert "because what is it" in shown.out and f"{receipt} · rated 1" in shown.out
    found = live.json("sessions", "show", key, "-s", "talked")
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "user", "assistant"]
    assert live.json("sessions", "list", "-s", "talked", "--steps") == []
    unknown = live.reef("sessions", "show", "nobody")
    assert (unknown.status, "there is no session 'nobody'" in unknown.err) == (1, True)
