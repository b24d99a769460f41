"""`reef-claude` with the real Claude Code, a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import person
from tests.e2e.home import Home, linked
from tests.e2e.tmux import Tmux

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

RULE = "never use tabs in python"
SKILL = "---\nname: shipping\ndescription: How the <quincunx> is shipped\n---\n# Shipping\n\nCall the harbour first.\n"
OWN = {
    ".claude/CLAUDE.md": "You are mine.\n",
    ".claude/settings.json": '{"theme": "light"}\n',
    ".claude/skills/mine/SKILL.md": "---\nname: mine\ndescription: mine alone\n---\nx\n",
    ".claude/.credentials.json": '{"claudeAiOauth": {"accessToken": "sk-mine"}}\n',
    ".claude.json": '{"hasCompletedOnboarding": true, "theme": "light"}\n',
}


@pytest.fixture
def home(tmp_path: Path, need_tool: Callable[[str], str], vendors: Path) -> Iterator[Home]:
    """A person's home in a sealed room, with Claude Code in it and files of the person's own Claude Code beside."""
    with person.at_home(tmp_path, need_tool, vendors, OWN) as made:
        yield made


@pytest.fixture
def coding(home: Home) -> Home:
    return person.serve(home, "claude")


def plant(home: Home, *entries: dict[str, str]) -> None:
    person.plant(home, "claude", entries, 300)


def calls(home: Home) -> list[dict[str, Any]]:
    """The requests that Claude Code itself made."""
    return person.asked(home, "/v1/messages")


def told(body: dict[str, Any]) -> str:
    """Everything that a request says to the model, tools aside."""
    said = [body["system"], *(message["content"] for message in body["messages"])]
    return "\n".join(part["text"] for parts in said for part in parts if isinstance(part, dict) and "text" in part) + (
        "\n".join(part for part in said if isinstance(part, str))
    )


def own_files(home: Home) -> dict[str, str]:
    """Hash of every file of the person's own Claude Code."""
    return person.hashes(home, ".claude.json", ".claude")


def trusted(home: Home) -> None:
    """The person has said before that they trust the project, which Claude Code asks in each new one."""
    place = home.data / "harness/coding/claude/home/.claude.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"projects": {str(home.project): {"hasTrustDialogAccepted": True}}}))


def test_a_planted_rule_skill_and_command_are_in_the_request_and_the_session_reads_back(coding: Home) -> None:
    before = (coding.checksums(), own_files(coding))
    assert len(before[1]) == len(OWN)
    plant(
        coding,
        {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
        {"op": "create", "id": "shipping", "kind": "skill", "text": SKILL},
        {"op": "create", "id": "greet", "kind": "agent_command", "text": "Greet $1 and $0 with a song.\n"},
    )
    (coding.project / "CLAUDE.md").write_text("The project wants spaces.\n")
    first = len(calls(coding))
    said = coding.ok("reef-claude -p 'Make it. [[shell echo made | tee proof.txt]]' --allowedTools Bash")
    assert "made" in said and (coding.project / "proof.txt").read_text() == "made\n"
    asked = calls(coding)[first:]
    sent = told(asked[0])
    assert RULE in sent and "The project wants spaces." in sent
    assert "- shipping: How the &lt;quincunx&gt; is shipped" in sent
    assert "You are mine" not in sent and "mine alone" not in sent
    assert {body["model"] for body in asked} == {"fake-model"} and asked[0]["max_tokens"] == 8192
    records = [row for row in coding.json("reef records list -s coding") if row["source"] == "agent"]
    assert (len(asked), len(records)) == (2, 2)
    assert {(row["adapter"], row["version"]) for row in records} == {("claude", 2)}
    (session,) = coding.json("reef sessions list -s coding")
    assert {row["session"] for row in records} == {session["key"]} and session["closed_at"] is not None
    assert "Make it." in coding.ok(f"reef sessions show {session['id']} -s coding")
    coding.ok("reef-claude -p '/greet one two'")
    assert "Greet two and one with a song." in told(calls(coding)[-1])

    place = coding.data / "harness/coding/claude"
    files = coding.json(f"reef import {place / 'home' / 'projects'} --scenario old --dry-run")["files"]
    assert sorted((file["kind"], file["records"]) for file in files) == [("claude", 1), ("claude", 2)]
    # Nothing of the person's is changed, nothing of the version, and no token is on disk.
    assert (coding.checksums(), own_files(coding)) == before
    assert coding.ok("reef-claude --version").strip() == "2.1.332 (Claude Code)"
    written = [file for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    token = re.compile(rb"rs-[A-Za-z0-9_-]{16,}|sk-mine")
    assert not [file for file in written if token.search(file.read_bytes())]


def test_the_session_commands_make_no_model_call(coding: Home) -> None:
    filed = coding.ok(f"reef-claude -p '/reefine {RULE}, \"ever\"'")
    assert "reef: ask #1 filed for scenario coding\nfollow it with: reef asks watch 1 -s coding" in filed
    coding.ok("reef-claude wait 1", timeout=300)
    listed = coding.ok("reef-claude -p /versions")
    assert "v1  the base of this scenario  installed" in listed and "v2 " in listed and "served" in listed
    assert "reef: scenario coding has no version v9" in coding.ok("reef-claude -p '/versions v9'")
    # Nobody sits at a terminal whom the wrapper could ask.
    refused = coding.ok("reef-claude -p '/versions v2 install'")
    assert "reef: there is no terminal on which the person could be asked (reef versions install v2" in refused
    assert calls(coding) == []
    ask = coding.json("reef asks show 1 -s coding")
    assert ask["text"] == f'{RULE}, "ever"'
    assert ask["session"] in [row["id"] for row in coding.json("reef sessions list -s coding --limit 9")]


def test_on_the_persons_own_configuration_the_version_comes_as_a_plugin(coding: Home) -> None:
    plant(
        coding,
        {"op": "create", "id": "tabs", "kind": "rules", "text": f'{RULE}, "said" {{url}}'},
        {"op": "create", "id": "shipping", "kind": "skill", "text": SKILL},
    )
    before = own_files(coding)
    coding.ok("reef-claude --alongside -p 'say hi'")
    sent = calls(coding)[-1]
    assert f'{RULE}, "said" {{url}}' in told(sent) and "reef:shipping: How the" in told(sent)
    assert "You are mine" in told(sent) and "mine alone" in told(sent) and sent["model"] == "fake-model"
    after = own_files(coding)
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed <= {".claude.json"}  # Claude Code counts its own starts there
    asked = len(calls(coding))
    assert "reef: ask #2 filed" in coding.ok("reef-claude --alongside -p '/reefine be brief'")
    assert len(calls(coding)) == asked


def test_a_prompt_over_the_models_window_is_refused_in_reefs_own_words(home: Home, vendors: Path) -> None:
    linked(vendors / "models", home.data / "models")
    home.ok("reef up --recipe reefine --harness.adapter claude --model embedded")
    home.ok("reef scenarios create coding && reef agents add claude -s coding")
    ran = home.sh("reef-claude -p 'say hi'", timeout=200)
    assert ran.returncode != 0
    assert re.search(r"request needs about [\d,]+ tokens, the model has 8,192", ran.stdout + ran.stderr), ran


def test_an_ask_typed_in_a_session_comes_back_as_a_rule_of_the_same_session(coding: Home, tmux: Tmux) -> None:
    coding.ok("reef-claude evolve 'be brief' --wait", timeout=300)
    trusted(coding)
    tmux.start("reef-claude")
    tmux.until("v2 of scenario coding is served, v1 is installed here; install it: /versions install")
    tmux.type(f"/reefine {RULE}")
    tmux.until("ask #2 filed for scenario coding")
    coding.ok("reef-claude wait 2", timeout=300)
    tmux.type("/versions")
    tmux.until("ask #2 published v3")
    assert calls(coding) == []
    tmux.type("/versions install")
    tmux.until("An agent's session asks reef to install v3 of scenario coding. v1 is installed.")
    tmux.until("Install v3 for Claude Code? [y = yes, n = no]")
    tmux.key("y")
    tmux.until("v3 is installed; its rules count from the next turn on")
    tmux.type("say hello")
    tmux.until("You said:")
    assert RULE in told(calls(coding)[-1]) and "say hello" in told(calls(coding)[-1])
    tmux.type("/exit")
    tmux.until("with reef: reef-claude --resume")
