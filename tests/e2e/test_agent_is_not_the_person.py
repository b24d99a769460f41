"""From a shell inside an agent's session reef reports as the agent and decides nothing."""

from __future__ import annotations

import json

import pytest

from tests.e2e.home import Home, requests_of

pytestmark = [pytest.mark.network, pytest.mark.timeout(200)]


def inside(home: Home, command: str) -> str:
    """Have the scripted model make pi's own bash tool run `command`. Returns what pi printed."""
    call = json.dumps({"command": command})
    return home.ok(f"reef-pi -p '[[tool bash {call}]]'")


@pytest.fixture
def working(home: Home) -> Home:
    """A home with pi installed for the default scenario, in front of the scripted model."""
    url, _ = home.fake_upstream()
    home.ok(f"reef up --recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok("reef agents add pi")
    return home


def test_a_rating_from_inside_is_stored_as_the_agents(working: Home) -> None:
    inside(working, "reef good")
    rated = [row for row in working.json("reef records list") if row["agent_score"] is not None]
    assert len(rated) == 1
    assert rated[0]["score"] is None


def test_a_decision_from_inside_ends_with_5(working: Home) -> None:
    inside(working, "reef versions promote v1; echo status $?")
    log = working.folder.parent / "upstream.jsonl"
    said = json.dumps(requests_of(log)[-1]["messages"][-1])
    assert "status 5" in said


def test_unsetting_the_session_does_not_make_the_agent_the_person(working: Home) -> None:
    inside(working, "env -u REEF_SESSION reef versions promote v1; echo status $?")
    log = working.folder.parent / "upstream.jsonl"
    assert "status 5" in json.dumps(requests_of(log)[-1]["messages"][-1])


def test_the_agent_gets_neither_the_token_nor_a_providers_key(working: Home) -> None:
    call = json.dumps({"command": "env | cut -d= -f1 | sort | tr '\\n' ' '"})
    working.ok(
        f"reef-pi -p '[[tool bash {call}]]'",
        OPENAI_API_KEY="sk-test-0123456789abcdefghijklmn",
        ANTHROPIC_API_KEY="sk-ant-0123456789abcdefghijklmn",
    )
    log = working.folder.parent / "upstream.jsonl"
    said = json.dumps(requests_of(log)[-1]["messages"][-1])
    assert "REEF_SESSION" in said
    assert "OPENAI_API_KEY" not in said
    assert "ANTHROPIC_API_KEY" not in said
    assert "REEF_TOKEN" not in said
