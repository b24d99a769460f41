"""`reef why`: from a line, an entry or a version to what led to it."""

from __future__ import annotations

import json
from pathlib import Path

from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from tests.cli.conftest import Live
from tests.cli.grown import ASK, RULE

CHAIN = ["version", "step", "ask"]


def test_an_entry_and_a_version_lead_to_the_step_and_its_ask(live: Live) -> None:
    found = live.json("why", "bugs", "-s", "grown")
    assert [link["kind"] for link in found["links"]] == ["entry", *CHAIN]
    assert {link["how"] for link in found["links"]} == {"recorded"}
    assert (found["links"][1]["version"], found["links"][3]["text"]) == (2, ASK)
    assert [link["kind"] for link in live.json("why", "v2", "-s", "grown")["links"]] == CHAIN
    shown = live.reef("why", "bugs", "-s", "grown").out
    assert f'#1 "{ASK}"' in shown and "recorded: the step took it" in shown


def test_a_line_is_named_by_its_place_in_the_tree_or_by_the_installed_file(live: Live, tmp_path: Path) -> None:
    by_place = live.json("why", "AGENTS.md:1", "-s", "grown", "--adapter", "pi")
    assert [link["kind"] for link in by_place["links"]] == ["line", "entry", *CHAIN]
    assert by_place["links"][0]["text"] == RULE
    adapter = load_adapter("pi", live.paths)
    done = install_tree(
        live.paths, "grown", adapter, 2, {"AGENTS.md": f"{RULE}\n".encode()}, release_id="0" * 40, content_id="0" * 40
    )
    file = live.paths.harness / "grown" / "pi" / "tree" / "AGENTS.md"
    assert done.to_json()["version"] == 2 and file.is_file()
    assert live.json("why", f"{file}:1") == by_place
    file.chmod(0o600)
    file.write_text("by hand\n")
    changed = live.reef("why", f"{file}:1")
    assert (changed.status, "was changed on disk" in changed.err) == (1, True)
    other = tmp_path / "AGENTS.md"
    other.write_text("the project's own\n")
    refused = live.reef("why", f"{other}:1", "-s", "grown")
    assert (refused.status, "is no file that reef installed" in refused.err) == (1, True)
    beside = live.reef("why", "AGENTS.md:1", "-s", "grown", "--adapter", "pi", cwd=tmp_path)
    assert (beside.status, RULE in beside.out) == (0, True)
    assert "AGENTS.md of the installed tree, not the one in this folder" in beside.err


def test_what_is_not_there_is_named_with_what_is(live: Live) -> None:
    for target, told in (("nope", "(entries: bugs, "), ("v99", "(versions: v1"), ("AGENTS.md:99", "and no line 99")):
        done = live.reef("why", target, "-s", "grown", "--adapter", "pi")
        assert (done.status, told in done.err) == (1, True), done.err


def test_an_agents_session_does_not_read_what_the_person_asked(live: Live) -> None:
    done = live.reef("why", "bugs", "-s", "grown", env={"REEF_SESSION": "reef-x"})
    assert done.status == 5
    assert json.dumps(ASK) not in done.out
