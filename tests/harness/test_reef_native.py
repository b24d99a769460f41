"""`reef-native`, which ships with reef: a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.home import Home, requests_of
from tests.e2e.room import Room

RULE = "never use tabs in python"
SKILL = "---\nname: linter\ndescription: how to lint here\n---\nRun the planted linter.\n"


@pytest.fixture
def coding(tmp_path: Path, room: Room) -> Iterator[Home]:
    """A home with a daemon on the scripted upstream and scenario `coding` installed for the native agent."""
    home = Home(tmp_path / "person", room)
    url, _ = home.fake_upstream()
    upstream = f"--inference.upstream-url {url} --inference.upstream-model fake-model"
    home.ok(f"reef up --recipe reefine --harness.adapter native {upstream}")
    home.ok("reef scenarios create coding && reef agents add native")
    home.ok("reef versions install -s coding --adapter native")
    yield home
    home.sh("reef down --now")


def plant(home: Home, entries: list[dict[str, str]]) -> None:
    """Have a step publish these entries and install what it made."""
    proposal = json.dumps({"entries": entries, "summary": "planted"})
    (home.project / "ask").write_text(f"[[propose {proposal}]]")
    home.ok('reef-native evolve "$(cat ask)" --wait && reef-native update')


def calls(home: Home) -> list[dict[str, object]]:
    """The requests that the agent itself made: the ones that offer tools."""
    return [body for body in requests_of(home.upstream_log) if body.get("tools")]


def test_a_planted_rule_and_skill_are_in_the_request_and_the_session_reads_back(coding: Home) -> None:
    before = coding.checksums()
    plant(
        coding,
        [
            {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
            {"op": "create", "id": "linter", "kind": "skill", "text": SKILL},
        ],
    )
    first = len(calls(coding))
    said = coding.ok('reef-native -p \'[[tool bash {"command": "echo made > proof.txt; cat proof.txt"}]]\'')
    assert said == "The tool said: made\n" and (coding.project / "proof.txt").read_text() == "made\n"
    system = str(calls(coding)[first]["messages"])
    assert RULE in system and "- linter: how to lint here" in system
    coding.ok("reef-native -p '/skill:linter now'")
    assert "Run the planted linter." in str(calls(coding)[-1]["messages"])
    record = coding.json("reef records list -s coding")[0]
    assert (record["source"], record["adapter"], record["version"]) == ("agent", "native", 2)
    session = coding.json("reef sessions list -s coding")[0]
    assert session["key"] == record["session"] and session["closed_at"] is not None
    assert coding.checksums() == before
    home = coding.data / "harness/coding/native/home"
    # Both sessions are read as conversations of before: one with a tool, one with a skill.
    files = coding.json(f"reef import {home / 'sessions'} --scenario old --dry-run")["files"]
    assert sorted((file["kind"], file["records"]) for file in files) == [("native", 1), ("native", 2)]


def test_the_session_commands_make_no_model_call(coding: Home) -> None:
    assert coding.ok("reef-native -p /reefine") == "usage: /reefine what should change, in plain words\n"
    filed = coding.ok(f"reef-native -p '/reefine {RULE}'")
    assert filed.splitlines()[0] == "reef: ask #1 filed for scenario coding"
    listed = coding.ok("reef-native -p /versions")
    assert "v1  the base of this scenario  " in listed and "installed" in listed
    # What is installed already needs no question; one that changes something is asked on a terminal only.
    assert coding.ok("reef-native -p '/versions v1 install'").startswith("reef: v1 is installed")
    unknown = coding.sh("reef-native -p '/versions v9'")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("error: scenario coding has no version v9\n")
    assert coding.json("reef asks show 1 -s coding")["session"] is not None
    assert calls(coding) == []
