"""`reef-codex` with the real Codex, a real daemon and a scripted upstream, where only loopback answers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import person
from tests.e2e.home import Home, linked

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

RULE = "never use tabs in python"
SKILL = "---\nname: shipping\ndescription: How the quincunx is shipped\n---\n# Shipping\n\nCall the harbour first.\n"
OWN = {
    ".codex/config.toml": '# mine\nmodel = "other"\n',
    ".codex/AGENTS.md": "Use tabs.\n",
    ".codex/auth.json": '{"OPENAI_API_KEY": "sk-mine"}\n',
    ".codex/skills/mine/SKILL.md": "---\nname: mine\ndescription: My own skill\n---\nMine.\n",
}
EXEC = "reef-codex exec --skip-git-repo-check"


@pytest.fixture
def home(tmp_path: Path, need_tool: Callable[[str], str], vendors: Path) -> Iterator[Home]:
    """A person's home in a sealed room, with Codex in it and files of the person's own Codex beside."""
    with person.at_home(tmp_path, need_tool, vendors, OWN) as made:
        # Codex makes no sandbox from a home below the temporary folder, where this one is.
        made.env["TMPDIR"] = str(made.folder / "tmp")
        (made.folder / "tmp").mkdir()
        yield made


@pytest.fixture
def coding(home: Home) -> Home:
    return person.serve(home, "codex")


def plant(home: Home, *entries: dict[str, str]) -> None:
    person.plant(home, "codex", entries, 200)


def calls(home: Home) -> list[dict[str, Any]]:
    """The requests that Codex itself made."""
    return person.asked(home, "/v1/responses")


def told(body: dict[str, Any]) -> str:
    """Everything that a request says to the model."""
    parts = [part for item in body["input"] for part in item.get("content") or []]
    return "\n".join(part["text"] for part in parts if "text" in part)


def own_files(home: Home) -> dict[str, str]:
    """Hash of every file of the person's own Codex."""
    return person.hashes(home, ".codex")


def test_a_planted_rule_skill_and_command_are_in_the_request_and_the_session_reads_back(coding: Home) -> None:
    before = (coding.checksums(), own_files(coding))
    plant(
        coding,
        {"op": "create", "id": "tabs", "kind": "rules", "text": RULE},
        {"op": "create", "id": "shipping", "kind": "skill", "text": SKILL},
        {"op": "create", "id": "greet", "kind": "agent_command", "text": "Greet the crew with a song.\n"},
    )
    first = len(calls(coding))
    said = coding.ok(f"{EXEC} -s workspace-write 'Make it. [[shell echo made | tee proof.txt]]'")
    assert "made" in said and (coding.project / "proof.txt").read_text() == "made\n"
    asked = calls(coding)[first:]
    assert RULE in told(asked[0]) and "- shipping: How the quincunx is shipped (file:" in told(asked[0])
    assert "mine" not in [skill.partition(":")[0] for skill in told(asked[0]).split("\n- ")]
    records = [row for row in coding.json("reef records list -s coding") if row["source"] == "agent"]
    assert (len(asked), len(records)) == (2, 2)
    assert {(row["adapter"], row["version"]) for row in records} == {("codex", 2)}
    (session,) = coding.json("reef sessions list -s coding")
    assert {row["session"] for row in records} == {session["key"]} and session["closed_at"] is not None
    coding.ok(f"{EXEC} '$greet them'")
    assert "Greet the crew with a song." in told(calls(coding)[-1])

    place = coding.data / "harness/coding/codex"
    files = coding.json(f"reef import {place / 'home' / 'sessions'} --scenario old --dry-run")["files"]
    assert [(file["kind"], file["records"]) for file in files] == [("codex", 2), ("codex", 1)]
    # Nothing of the person's is changed, nothing of the version, and no token is on disk.
    assert (coding.checksums(), own_files(coding)) == before
    assert coding.ok("reef-codex --version").strip() == "codex-cli 0.171.0"
    places = {row["place"]: row for row in coding.json("reef off --prove")["places"]}
    own = places["~/.codex"]
    assert own["files"] == len(OWN) and own["changed"] == []
    assert own["installed"] == own["started"] == own["before"] == own["now"]
    written = [file for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    token = re.compile(rb"rs-[A-Za-z0-9_-]{16,}|sk-mine")
    assert not [file for file in written if token.search(file.read_bytes())]


def test_an_ask_is_filed_without_a_model_call_and_its_reply_is_shown_after_the_run(coding: Home) -> None:
    ran = coding.sh(f"{EXEC} 'reefine: {RULE}'")
    assert ran.returncode == 0, ran
    assert "reef: ask #1 filed for scenario coding" in ran.stderr
    coding.ok("reef-codex wait 1", timeout=200)
    assert calls(coding) == []
    ask = coding.json("reef asks show 1 -s coding")
    assert ask["session"] == coding.json("reef sessions list -s coding")[0]["id"]


def test_what_a_person_trusted_stays_and_a_projects_own_hook_waits_for_them(coding: Home) -> None:
    (coding.project / ".codex").mkdir()
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}
    (coding.project / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    coding.ok(f"{EXEC} --trust 'say hi'")
    assert not (coding.project / "ran").exists()
    coding.ok(f"{EXEC} 'say hi again'")
    config = tomllib.loads((coding.data / "harness/coding/codex/home/config.toml").read_text())
    assert config["projects"] == {str(coding.project): {"trust_level": "trusted"}}
    assert len(config["hooks"]["state"]) == 3 and not (coding.project / "ran").exists()


def test_on_the_persons_own_configuration_the_rules_are_added_and_no_file_is_changed(coding: Home) -> None:
    plant(coding, {"op": "create", "id": "tabs", "kind": "rules", "text": f'{RULE}, "said" {{url}}'})
    before = own_files(coding)
    coding.ok("reef-codex --alongside exec --skip-git-repo-check 'say hi'")
    sent = calls(coding)[-1]
    assert f'{RULE}, "said" {{url}}' in told(sent) and "Use tabs." in told(sent) and "My own skill" in told(sent)
    assert sent["model"] == "fake-model"
    after = own_files(coding)
    assert {name: after[name] for name in before} == before
    ran = coding.sh("reef-codex --alongside exec --skip-git-repo-check 'reefine: be brief'")
    assert "reef: ask #2 filed" in ran.stderr and len(calls(coding)) == 1


def test_a_prompt_over_the_models_window_is_refused_in_reefs_own_words(home: Home, vendors: Path) -> None:
    linked(vendors / "models", home.data / "models")
    home.ok("reef up --recipe reefine --harness.adapter codex --model embedded")
    home.ok("reef scenarios create coding && reef agents add codex -s coding")
    # Bare, it asks with about 4,100 tokens, which the embedded model takes: its template has no place for tools.
    ran = home.sh(f"{EXEC} '{'say hi to everyone ' * 1500}'", timeout=200)
    assert ran.returncode == 1
    assert re.search(r"request needs about [\d,]+ tokens, the model has 8,192", ran.stdout + ran.stderr), ran
