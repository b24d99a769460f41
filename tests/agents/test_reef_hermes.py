"""`reef-hermes` with the real Hermes Agent, a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import person
from tests.e2e.home import Home, linked, requests_of

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

RULE = "never use tabs in python"
SKILL = "---\nname: shipping\ndescription: How the quincunx is shipped\n---\n# Shipping\n\nCall the harbour first.\n"
OWN = {"config.yaml": "# mine\nmodel: {default: other}\n", "SOUL.md": "You are mine.\n", ".env": "KEY=sk-mine\n"}


@pytest.fixture
def home(tmp_path: Path, need_tool: Callable[[str], str], vendors: Path) -> Iterator[Home]:
    """A person's home in a sealed room, with Hermes in it and files of the person's own Hermes beside."""
    own = {f".hermes/{name}": text for name, text in OWN.items()}
    with person.at_home(tmp_path, need_tool, vendors, own) as made:
        yield made


@pytest.fixture
def coding(home: Home) -> Home:
    return person.serve(home, "hermes")


def plant(home: Home, *entries: dict[str, str]) -> None:
    person.plant(home, "hermes", entries, 200)


def calls(home: Home) -> list[dict[str, Any]]:
    """The requests that Hermes itself made: the ones that offer tools."""
    return [body for body in requests_of(home.upstream_log) if body.get("tools")]


def own_files(home: Home) -> dict[str, str]:
    """Hash of every file of the person's own Hermes."""
    return person.hashes(home, ".hermes")


def test_a_planted_rule_and_skill_are_in_the_request_and_the_session_reads_back(coding: Home) -> None:
    before = (coding.checksums(), own_files(coding))
    plant(
        coding,
        {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
        {"op": "create", "id": "shipping", "kind": "skill", "text": SKILL},
        {"op": "create", "id": "greet", "kind": "agent_command", "text": "Greet $ARGUMENTS with a song.\n"},
    )
    first = len(calls(coding))
    said = coding.ok("reef-hermes -z 'Make it. [[shell echo made | tee proof.txt]]' --yolo")
    assert "made" in said and (coding.project / "proof.txt").read_text() == "made\n"
    asked = calls(coding)[first:]
    system = str(asked[0]["messages"][0]["content"])
    assert RULE in system and "- shipping: How the quincunx is shipped" in system
    records = [row for row in coding.json("reef records list -s coding") if row["source"] == "agent"]
    assert len(asked) == len(records) == 2
    assert {(row["adapter"], row["version"]) for row in records} == {("hermes", 2)}
    (session,) = coding.json("reef sessions list -s coding")
    assert {row["session"] for row in records} == {session["key"]} and session["closed_at"] is not None
    assert {row["route"].partition("?")[0] for row in records} == {"/v1/chat/completions"}
    coding.ok("reef-hermes -z '/greet the crew' --yolo")
    assert calls(coding)[-1]["messages"][-1]["content"] == "Greet the crew with a song."

    place = coding.data / "harness/coding/hermes"
    files = coding.json(f"reef import {place / 'home' / 'state.db'} --scenario old --dry-run")["files"]
    assert [(file["kind"], file["records"]) for file in files] == [("hermes", 3)]
    # Nothing of the person's is changed, nothing of the version, and no token is on disk.
    assert (coding.checksums(), own_files(coding)) == before
    assert coding.sh("reef-hermes --version").returncode == 0
    written = [file for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    token = re.compile(rb"rs-[A-Za-z0-9_-]{16,}|sk-mine")
    assert not [file for file in written if token.search(file.read_bytes())]
    assert not list((place / "tree").rglob("__pycache__"))


def test_the_session_commands_make_no_model_call(coding: Home) -> None:
    assert coding.ok("reef-hermes -z /reefine --yolo") == "usage: /reefine what should change, in plain words\n"
    filed = coding.ok(f"reef-hermes -z '/reefine {RULE}' --yolo")
    assert filed.splitlines() == [
        "reef: ask #1 filed for scenario coding",
        "follow it with: reef asks watch 1 -s coding",
    ]
    coding.ok("reef-hermes wait 1", timeout=200)
    listed = coding.ok("reef-hermes -z /versions --yolo")
    assert "v1  the base of this scenario  installed" in listed and "v2 " in listed and "served" in listed
    unknown = coding.ok("reef-hermes -z '/versions v9' --yolo")
    assert unknown == "reef: scenario coding has no version v9\n"
    # Nobody sits at a terminal whom the wrapper could ask.
    told = coding.ok("reef-hermes -z '/versions v2 install' --yolo")
    assert told.startswith("reef: there is no terminal on which the person could be asked (reef versions install v2")
    assert calls(coding) == []
    ask = coding.json("reef asks show 1 -s coding")
    assert ask["session"] in [row["id"] for row in coding.json("reef sessions list -s coding --limit 9")]


def test_a_prompt_over_the_models_window_is_refused_in_reefs_own_words(home: Home, vendors: Path) -> None:
    linked(vendors / "models", home.data / "models")
    home.ok("reef up --recipe reefine --harness.adapter hermes --model embedded")
    home.ok("reef scenarios create coding && reef agents add hermes -s coding")
    # The embedded model's template shows it no tools, so that a bare request fits.
    (home.project / "long").write_text("what does this mean? " * 3000)
    ran = home.sh('reef-hermes -z "$(cat long)" --yolo', timeout=300)
    assert re.search(r"request needs about [\d,]+ tokens, the model has 8,192", ran.stdout + ran.stderr), ran
