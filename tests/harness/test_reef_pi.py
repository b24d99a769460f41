"""`reef-pi` with the real pi, a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.home import Home, requests_of

RULE = "never use tabs in python"


def tree(home: Home) -> Path:
    return home.data / "harness" / "coding" / "pi" / "tree"


def calls(home: Home) -> list[dict[str, Any]]:
    """The requests that pi itself made: the ones that offer tools."""
    return [body for body in requests_of(home.upstream_log) if body.get("tools")]


def test_the_installed_rule_is_in_pis_own_request_and_the_call_belongs_to_the_session(coding: Home) -> None:
    coding.ok(f'reef-pi evolve "{RULE}" --wait')
    episodes = coding.json("reef steps show 1 -s coding")["episodes"]
    assert [(row["side"], row["purpose"], row["exit_code"]) for row in episodes] == [
        ("current", "reach", 0),
        ("candidate", "reach", 0),
    ]
    assert "installed v2" in coding.ok("reef-pi update")
    before = coding.checksums()
    said = coding.ok("reef-pi -p 'say hi'")
    assert "hi" in said
    sent = calls(coding)[-1]
    assert RULE in sent["messages"][0]["content"]
    record = coding.json("reef records list -s coding")[0]
    assert (record["source"], record["adapter"], record["version"]) == ("agent", "pi", 2)
    session = coding.json("reef sessions list -s coding")[0]
    assert session["key"] == record["session"] and session["closed_at"] is not None
    assert coding.checksums() == before
    # The person's own pi folder is as it was, and nothing new is beside it.
    assert sorted(path.name for path in (coding.folder / ".pi").rglob("*")) == ["AGENTS.md", "agent", "settings.json"]
    assert not (coding.folder / ".npm").exists()


def test_arguments_stdin_and_exit_status_pass_to_pi(coding: Home) -> None:
    assert coding.ok("reef-pi --version").strip() == "1.6.0"
    coding.ok("echo 'the piped words' | reef-pi -p 'say the following'")
    assert "the piped words" in json.dumps(calls(coding)[-1]["messages"])
    refused = coding.sh("reef-pi --no-such-flag -p hi")
    bare = coding.sh("reef-pi -p 'x' --model nothing/at-all")
    assert refused.returncode != 0 and bare.returncode != 0


def test_a_rule_that_was_swapped_by_hand_stops_the_start_with_its_name(coding: Home) -> None:
    coding.ok(f'reef-pi evolve "{RULE}" --wait && reef-pi update')
    (tree(coding) / "AGENTS.md").write_text("use tabs\n")
    done = coding.sh("reef-pi -p hi")
    assert (done.returncode, done.stdout) == (5, "")
    assert f"{tree(coding) / 'AGENTS.md'} was changed after the install" in done.stderr
    assert calls(coding) == []


def test_the_session_commands_work_without_a_model_turn(coding: Home) -> None:
    usage = coding.ok("reef-pi -p /reefine")
    assert usage == "usage: /reefine what should change, in plain words\n"
    filed = coding.ok(f"reef-pi -p '/reefine {RULE}'")
    assert "reef: ask #1 filed for scenario coding" in filed
    coding.ok("reef-pi wait 1")
    listed = coding.ok("reef-pi -p /versions")
    assert "v1  the base of this scenario  installed" in listed and "v2 " in listed and "served" in listed
    told = coding.sh("setsid --wait reef-pi -p '/versions v2 install'")
    assert "no terminal on which the person could be asked" in told.stderr
    assert "reef versions install v2 --adapter pi -s coding" in told.stderr
    assert "is installed already" in coding.ok("setsid --wait reef-pi -p '/versions v1 install'")
    unknown = coding.sh("reef-pi -p '/versions v9'")
    assert (unknown.stdout, unknown.stderr) == ("", "reef: scenario coding has no version v9\n")
    assert calls(coding) == []
    ask = coding.json("reef asks show 1 -s coding")
    assert ask["session"] == coding.json("reef sessions list -s coding --limit 9")[-2]["id"]


def test_when_the_daemon_dies_the_agents_own_folder_is_untouched_and_the_wrapper_says_so(coding: Home) -> None:
    before = coding.checksums()
    coding.ok("reef-pi -p hi")
    coding.ok(
        "kill -9 $(python -c \"import json; print(json.load(open('$HOME/.local/state/reef/daemon.json'))['pid'])\")"
    )
    done = coding.sh("reef-pi -p hi", REEF_AUTOSTART="false")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "error: the daemon is not running\nhint: reef up\n")
    assert coding.checksums() == before


def test_no_key_of_the_session_is_on_disk_and_none_of_the_persons_reaches_the_agent(coding: Home) -> None:
    foreign = {"OPENAI_API_KEY": "sk-foreign", "ANTHROPIC_BASE_URL": "http://192.0.2.1", "REEF_TOKEN": ""}
    coding.ok("reef-pi -p hi", **foreign)
    home = coding.data / "harness" / "coding" / "pi" / "home"
    texts = {str(file): file.read_text(errors="replace") for file in home.rglob("*") if file.is_file()}
    assert json.loads(texts[str(home / "models.json")])["providers"]["reef"]["apiKey"] == "$REEF_SESSION"
    assert json.loads(texts[str(home / "auth.json")]) == {}
    assert not [name for name, text in texts.items() if "sk-foreign" in text]


def test_an_agent_that_starts_an_agent_hands_its_own_session_on(coding: Home) -> None:
    # The model asks for one shell call, which starts the wrapper again inside the session.
    coding.ok('reef-pi -p \'[[tool bash {"command": "reef-pi -p inner"}]]\'')
    sessions = coding.json("reef sessions list -s coding")
    assert len(sessions) == 1 and sessions[0]["calls"] >= 3
