"""The program behind an agent's hooks: reef's own commands without the model, what is new, rules installed since."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reef.harness.confirming import Confirming
from reef.paths import Paths
from tests.fakes.daemon_fake import DaemonFake, version_row


class Agent:
    """A session of an agent whose hooks are run by hand."""

    def __init__(self, folder: Path, url: str) -> None:
        self.rules = folder / "tree" / "RULES.md"
        self.rules.parent.mkdir(parents=True)
        self.rules.write_text("be brief\n")
        self.installed(1)
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
            "REEF_URL": url,
            "REEF_SESSION": "rs-token",
            "REEF_SESSION_ID": "s1",
            "REEF_SCENARIO": "default",
            "REEF_TREE": str(self.rules.parent),
            "REEF_RULES": str(self.rules),
        }

    def installed(self, version: int) -> None:
        facts = {"version": version, "release_id": f"{version:040x}"}
        (self.rules.parent.parent / "install.json").write_text(json.dumps(facts))

    def event(self, name: str, prompt: str | None = None, *more: str, **env: str) -> dict[str, Any]:
        """What one hook answers; {} for nothing."""
        given = {"hook_event_name": name, "session_id": "a"} | ({} if prompt is None else {"prompt": prompt})
        done = subprocess.run(
            [sys.executable, "-P", "-m", "reef.harness.hook", "claude", name, *more],
            input=json.dumps(given), env=self.env | env, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        found: dict[str, Any] = json.loads(done.stdout or "{}")
        return found

    def said(self, prompt: str, *more: str, **env: str) -> str:
        """The reply to one of reef's own commands, which must not reach the model."""
        answer = self.event("UserPromptSubmit", prompt, *more, **env)
        assert answer["decision"] == "block", answer
        return str(answer["reason"])


@pytest.fixture
def fake(paths: Paths) -> Iterator[DaemonFake]:
    with DaemonFake(paths) as made:
        made.versions.append(version_row(1, "the base", current=True))
        yield made


@pytest.fixture
def agent(fake: DaemonFake, paths: Paths, tmp_path: Path) -> Agent:
    return Agent(tmp_path / "install", json.loads(paths.discovery.read_text())["url"])


@pytest.mark.parametrize(
    "typed", ["/reefine be brief", "/reef:reefine  be brief", "reefine: be brief", "$reefine be brief"]
)
def test_an_ask_is_filed_and_the_prompt_never_reaches_the_model(agent: Agent, fake: DaemonFake, typed: str) -> None:
    told = "reef: ask #1 filed for scenario default\nfollow it with: reef asks watch 1 -s default"
    assert agent.said(typed) == told
    assert [row["text"] for row in fake.asks] == ["be brief"]


@pytest.mark.parametrize("typed", ["say hi", "/reefined x", "what is /reefine for?", "reefine it", "/other x", ""])
def test_any_other_prompt_goes_on_unchanged(agent: Agent, fake: DaemonFake, typed: str) -> None:
    assert agent.event("UserPromptSubmit", typed) == {}
    assert fake.asks == []


def test_words_keep_their_quotes_and_lines_and_no_words_are_answered_with_the_usage(
    agent: Agent, fake: DaemonFake
) -> None:
    agent.said('/reefine say "no"\n and $(date)')
    assert fake.asks[0]["text"] == 'say "no"\n and $(date)'
    assert agent.said("/reefine") == "usage: /reefine what should change, in plain words"
    assert agent.said("reefine:", "colon") == "usage: reefine: what should change, in plain words"


def test_what_became_of_an_ask_and_a_newer_version_are_said_once(agent: Agent, fake: DaemonFake) -> None:
    agent.event("SessionStart")
    agent.said("/reefine be brief")
    assert agent.event("Stop") == {}
    fake.asks[0] |= {"state": "published", "version": 2, "reason": "Add the rule \x1b[2Jbe-brief"}
    fake.versions.append(version_row(2, "Add a rule", current=True))
    fake.versions[0]["current"] = False
    settled = "reef: ask #1 published v2: Add the rule ␛[2Jbe-brief; install it: /versions v2 install"
    assert agent.event("UserPromptSubmit", "hi") == {"systemMessage": settled}
    fake.versions.append(version_row(3, "Add another", current=True))
    fake.versions[1]["current"] = False
    newer = "reef: v3 of scenario default is served, v1 is installed here; install it: /versions install"
    assert agent.event("Stop") == {"systemMessage": newer}
    assert agent.event("Stop") == {} and agent.event("UserPromptSubmit", "hi") == {}
    # Another session is told anew; one that is pinned is told how to leave its pin.
    fake.versions[0]["pinned"] = True
    (other,) = agent.event("SessionStart", REEF_SESSION_ID="s2").values()
    assert other.endswith("v1 is installed here; pinned, so it stays: reef versions unpin")


def test_rules_that_were_installed_since_are_added_at_the_next_turn_and_only_then(agent: Agent) -> None:
    agent.event("SessionStart")
    assert agent.event("UserPromptSubmit", "hi") == {}
    agent.rules.write_text("never use tabs\n")
    (added,) = agent.event("UserPromptSubmit", "hi").values()
    assert added["hookEventName"] == "UserPromptSubmit" and added["additionalContext"].endswith("\n\nnever use tabs")
    assert agent.event("UserPromptSubmit", "hi") == {}
    agent.rules.unlink()
    assert "withdrawn" in agent.event("UserPromptSubmit", "hi")["hookSpecificOutput"]["additionalContext"]


def test_versions_are_listed_with_what_is_served_and_installed(agent: Agent, fake: DaemonFake) -> None:
    fake.versions.append(version_row(2, "Add a rule", pending=True))
    assert agent.said("/versions").splitlines() == [
        "versions of scenario default",
        "v1  the base  served, installed",
        "v2  Add a rule  needs your yes",
    ]
    assert "reef versions show v2 -s default; here: /versions v2 install" in agent.said("/versions v2")
    assert agent.said("/versions v9 install") == "reef: scenario default has no version v9"
    outside = "reef: nobody can be asked from here; in another terminal: reef versions install v2 -s default"
    assert agent.said("/versions v2 install") == outside


def test_an_install_is_asked_of_the_wrapper_and_its_answer_is_said(agent: Agent, paths: Paths) -> None:
    asked: list[tuple[int | None, str]] = []

    def decide(version: int | None, screen: str, say: Any) -> dict[str, Any]:
        asked.append((version, screen))
        say({"asking": {"version": 2}})
        return {"installed": {"version": 2, "changed": True}} if version is None else {"declined": {"version": 1}}

    confirming = Confirming(paths, decide)
    try:
        told = agent.said("/versions install", "redraw", REEF_CONFIRM=str(confirming.path))
        assert told.startswith("reef: v2 is installed; its rules count from the next turn on")
        assert agent.said("/versions v1 install", REEF_CONFIRM=str(confirming.path)) == "reef: v1 was not installed"
    finally:
        confirming.close()
    assert asked == [(None, "alternate"), (1, "main")]


def test_without_the_daemon_a_turn_goes_on_in_silence_and_an_ask_is_answered(agent: Agent, fake: DaemonFake) -> None:
    fake.stop()
    for event in ("SessionStart", "Stop", "UserPromptSubmit", "Unknown"):
        assert agent.event(event, "hi") == {}
    assert agent.said("/reefine be brief") == "reef: the daemon is not running (reef up)"


def test_a_daemon_that_answers_something_else_costs_no_turn(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert agent.event("Stop", REEF_URL=url) == {}


def test_outside_of_reef_and_on_broken_input_nothing_happens(agent: Agent) -> None:
    assert agent.event("UserPromptSubmit", "/reefine x", REEF_SESSION="") == {}
    folder = agent.rules.parent.parent / "hook"
    folder.mkdir()
    (folder / "s1.json").write_text("[1]")
    assert agent.event("UserPromptSubmit", "hi") == {}


def test_what_is_said_is_also_left_for_the_wrapper_where_the_agent_shows_nothing(agent: Agent, tmp_path: Path) -> None:
    said = agent.said("/versions", REEF_SAID=str(tmp_path / "said"))
    assert (tmp_path / "said").read_text() == f"{said}\n"
