"""`reef-opencode` with the real OpenCode, a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents import person
from tests.e2e.home import Home, linked, requests_of

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

RULE = "never use tabs in python"
SKILL = "---\nname: shipping\ndescription: How the <quincunx> is shipped\n---\n# Shipping\n\nCall the harbour first.\n"
OWN = {
    ".config/opencode/opencode.json": '{"model": "other/model", "username": "ada"}\n',
    ".config/opencode/AGENTS.md": "You are mine.\n",
    ".local/share/opencode/auth.json": '{"other": {"type": "api", "key": "sk-mine"}}\n',
    ".opencode/skills/mine/SKILL.md": "---\nname: mine\ndescription: mine alone\n---\nx\n",
    ".agents/skills/shared/SKILL.md": "---\nname: shared\ndescription: everyone's\n---\nx\n",
    ".claude/CLAUDE.md": "You are Claude's.\n",
}


@pytest.fixture
def home(tmp_path: Path, need_tool: Callable[[str], str], vendors: Path) -> Iterator[Home]:
    """A person's home in a sealed room, with OpenCode in it and files of the person's own OpenCode beside."""
    with person.at_home(tmp_path, need_tool, vendors, OWN) as made:
        yield made


@pytest.fixture
def coding(home: Home) -> Home:
    return person.serve(home, "opencode")


def plant(home: Home, *entries: dict[str, str]) -> None:
    person.plant(home, "opencode", entries, 300)


def calls(home: Home) -> list[dict[str, Any]]:
    """The requests that OpenCode itself made: the ones that offer tools."""
    return [body for body in requests_of(home.upstream_log) if body.get("tools")]


def own_files(home: Home) -> dict[str, str]:
    """Hash of every file in the person's home that an OpenCode without reef would read."""
    found = person.hashes(home, ".config", ".opencode", ".agents", ".claude", ".local/share/opencode")
    return {name: digest for name, digest in found.items() if "reef" not in Path(name).parts}


def test_a_planted_rule_and_skill_are_in_the_request_and_the_session_reads_back(coding: Home) -> None:
    before = (coding.checksums(), own_files(coding))
    assert set(before[1]) == set(OWN)
    plant(
        coding,
        {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
        {"op": "create", "id": "shipping", "kind": "skill", "text": SKILL},
        {"op": "create", "id": "greet", "kind": "agent_command", "text": "Greet $ARGUMENTS with a song.\n"},
    )
    (coding.project / "AGENTS.md").write_text("The project wants spaces.\n")
    first = len(calls(coding))
    settings = str(coding.folder / ".config")
    shell = "env | grep ^XDG_.*_HOME= | sort > proof.txt; echo made"
    said = coding.ok(f"reef-opencode run 'Make it. [[shell {shell}]]'", timeout=300, XDG_CONFIG_HOME=settings)
    assert "made" in said
    # The shell tool has the person's own folders, not those that OpenCode was moved to.
    shown = (coding.project / "proof.txt").read_text().splitlines()
    moved = dict.fromkeys(("CACHE", "DATA", "STATE"), "") | {"CONFIG": settings}
    assert shown == [f"XDG_{name}_HOME={moved[name]}" for name in sorted(moved)]
    asked = calls(coding)[first:]
    system = str(asked[0]["messages"][0]["content"])
    assert RULE in system and "The project wants spaces." in system
    assert "<name>shipping</name>" in system and "How the <quincunx> is shipped" in system
    told = json.dumps(asked[0])
    for foreign in ("You are mine", "mine alone", "everyone's", "Claude's"):
        assert foreign not in told
    # The proposer's own call is beside them.
    records = [row for row in coding.json("reef records list -s coding") if row["adapter"] == "opencode"]
    assert len(asked) == 2 and len(records) == 2
    assert {(row["source"], row["version"]) for row in records} == {("agent", 2)}
    (key,) = {row["session"] for row in records}
    (session,) = (row for row in coding.json("reef sessions list -s coding") if row["key"] == key)
    assert session["closed_at"] is not None
    coding.ok("reef-opencode run --command greet the crew", timeout=300)
    assert calls(coding)[-1]["messages"][-1]["content"].strip() == "Greet the crew with a song."

    place = coding.data / "harness/coding/opencode"
    database = place / "home/xdg/data/opencode/opencode.db"
    files = coding.json(f"reef import {database} --scenario old --dry-run")["files"]
    assert [(file["kind"], file["records"]) for file in files] == [("opencode", 3)]
    # Nothing of the person's is changed, nothing of the version, nothing was fetched, and no token is on disk.
    assert (coding.checksums(), own_files(coding)) == before
    assert coding.ok("reef-opencode --version").strip() == "1.18.33"
    assert [file.name for file in (place / "home/node_modules").iterdir()] == [".package-lock.json"]
    written = [file for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    token = re.compile(rb"rs-[A-Za-z0-9_-]{16,}|sk-mine")
    assert not [file for file in written if token.search(file.read_bytes())]


def test_the_session_commands_make_no_model_call(coding: Home) -> None:
    assert "usage: /reefine what should change, in plain words\n" in coding.ok("reef-opencode run --command reefine")
    filed = coding.ok(f"reef-opencode run --command reefine '{RULE}, \"ever\"'")
    assert filed.splitlines()[-2:] == [
        "reef: ask #1 filed for scenario coding",
        "follow it with: reef asks watch 1 -s coding",
    ]
    coding.ok("reef-opencode wait 1", timeout=300)
    listed = coding.ok("reef-opencode run --command versions")
    assert "v1  the base of this scenario  installed" in listed and "v2 " in listed and "served" in listed
    unknown = coding.sh("reef-opencode run --command versions v9")
    assert unknown.returncode == 1 and "reef: scenario coding has no version v9\n" in unknown.stderr
    # Nobody sits at a terminal whom the wrapper could ask.
    told = coding.sh("reef-opencode run --command versions v2 install")
    assert "reef: there is no terminal on which the person could be asked (reef versions install v2" in told.stderr
    assert calls(coding) == []
    ask = coding.json("reef asks show 1 -s coding")
    assert ask["text"] == f'{RULE}, "ever"'
    assert ask["session"] in [row["id"] for row in coding.json("reef sessions list -s coding --limit 9")]


def test_a_prompt_over_the_models_window_is_refused_in_reefs_own_words(home: Home, vendors: Path) -> None:
    linked(vendors / "models", home.data / "models")
    home.ok("reef up --recipe reefine --harness.adapter opencode --model embedded")
    home.ok("reef scenarios create coding && reef agents add opencode -s coding")
    # OpenCode's own request fits into the small model, and with long rules of the project it does not.
    (home.project / "AGENTS.md").write_text("Use spaces in every file of this project. " * 1500)
    # Of itself OpenCode says so and then has the model sum the session up, which takes a small one minutes.
    ran = home.sh("reef-opencode run 'say hi'", timeout=300, OPENCODE_DISABLE_AUTOCOMPACT="1")
    assert re.search(r"request needs about [\d,]+ tokens, the model has 8,192", ran.stdout + ran.stderr), ran


def test_on_top_of_the_persons_own_configuration_theirs_and_reefs_are_both_there(coding: Home) -> None:
    plant(coding, {"op": "create", "id": "tabs", "kind": "rules", "text": RULE})
    before = coding.checksums()
    first = len(calls(coding))
    coding.ok("reef-opencode --alongside run 'say hi'", timeout=300)
    told = json.dumps(calls(coding)[first])
    for both in (RULE, "You are mine.", "mine alone", "everyone's"):
        assert both in told
    assert coding.checksums() == before
    with closing(sqlite3.connect(coding.folder / ".local/share/opencode/opencode.db")) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)
