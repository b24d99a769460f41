"""From a shell inside an agent's session reef reports as the agent and decides nothing."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.e2e.home import Home, requests_of

pytestmark = [pytest.mark.network, pytest.mark.timeout(200)]


def inside(home: Home, command: str, **env: str) -> str:
    """Have the scripted model make pi's own bash tool run `command`. Returns what the tool answered."""
    words = f"[[tool bash {json.dumps({'command': command})}]]"
    home.ok(f"reef-pi -p {shlex.quote(words)}", **env)
    answered = requests_of(home.upstream_log)[-1]["messages"][-1]
    assert answered["role"] == "tool", answered
    return json.dumps(answered)


@pytest.fixture
def working(home: Home) -> Home:
    """A home with pi installed for the default scenario, in front of the scripted model."""
    url, _ = home.fake_upstream()
    home.ok(f"reef up --recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok("reef agents add pi")
    return home


def test_a_rating_from_inside_is_stored_as_the_agents(working: Home) -> None:
    said = inside(working, "reef good; echo status $?")
    assert "status 0" in said, said
    rated = [row for row in working.json("reef records list") if row["agent_score"] is not None]
    assert len(rated) == 1
    assert rated[0]["score"] is None


@pytest.mark.parametrize(
    "command", ["reef versions promote v1", "reef versions rollback v1", "reef versions install v1 --yes", "reef down"]
)
def test_a_decision_from_inside_ends_with_5(working: Home, command: str) -> None:
    assert "status 5" in inside(working, f"{command}; echo status $?")


def test_unsetting_the_session_does_not_make_the_agent_the_person(working: Home) -> None:
    assert "status 5" in inside(working, "env -u REEF_SESSION reef versions promote v1; echo status $?")


def test_the_agent_gets_neither_the_token_nor_a_providers_key(working: Home) -> None:
    said = inside(
        working,
        "env | cut -d= -f1 | sort | tr '\\n' ' '",
        OPENAI_API_KEY="sk-test-0123456789abcdefghijklmn",
        ANTHROPIC_API_KEY="sk-ant-0123456789abcdefghijklmn",
    )
    assert "REEF_SESSION" in said
    assert "OPENAI_API_KEY" not in said
    assert "ANTHROPIC_API_KEY" not in said
    assert "REEF_TOKEN" not in said
