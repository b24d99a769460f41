"""The history of a scenario, differences word by word, and the version that stays installed."""

from __future__ import annotations

import json

from tests.cli.conftest import Live
from tests.cli.grown import ASK, RULE


def test_the_log_has_one_line_a_version_with_step_ask_and_decision(live: Live) -> None:
    lines = live.reef("versions", "log", "-s", "grown").out.splitlines()
    assert [line.split()[0] for line in lines] == ["version", "v3", "v2", "v1"]
    assert "step 3" in lines[1] and "waits for your yes" in lines[1]
    assert "step 1" in lines[2] and f'#1 "{ASK}"' in lines[2] and "reach pass" in lines[2] and "● head" in lines[2]
    assert "the base" in lines[3]
    rows = live.json("versions", "log", "-s", "grown", "--limit", "2")
    assert [(row["version"], row["decision"]) for row in rows] == [(3, "waits for your yes"), (2, "reach pass")]


def test_the_log_with_changes_shows_what_each_version_changed(live: Live) -> None:
    shown = live.reef("versions", "log", "-p", "-s", "grown").out
    assert f"  harness/rules/bugs.md  rules bugs · added\n  @@ -0,0 +1 @@\n  + {RULE}\n" in shown
    rows = live.json("versions", "log", "-p", "-s", "grown")
    assert [file["path"] for file in rows[1]["changes"]] == ["harness/rules/bugs.md"]
    assert rows[2]["changes"] == []


def test_a_diff_takes_base_and_says_what_a_step_did_not_make(live: Live) -> None:
    assert live.reef("versions", "diff", "base", "v2", "-s", "grown").out.startswith("base → v2\n")
    same = live.reef("versions", "diff", "s1", "v2", "-s", "grown")
    assert (same.out, same.status) == ("s1 → v2\n  no file differs\n", 0)
    missing = live.reef("versions", "diff", "v1", "s9", "-s", "grown")
    assert (missing.status, missing.out) == (1, "")
    assert missing.err.startswith("error: step 9 of scenario grown is not there (candidates: s1, s3)")


def test_a_pin_is_shown_everywhere_and_keeps_other_versions_from_being_installed(live: Live) -> None:
    done = live.reef("versions", "pin", "v1", "-s", "kept")
    assert (done.status, done.out) == (0, "pinned v1 · scenario kept · for every agent\n")
    assert "reef versions unpin -s kept" in done.err
    assert "published · pinned" in live.reef("versions", "list", "-s", "kept").out.splitlines()[3]
    assert "pinned · the base of this scenario" in live.reef("versions", "log", "-s", "kept").out.splitlines()[3]
    kept = next(line for line in live.reef("status").out.splitlines() if line.startswith("kept"))
    assert "pinned v1" in kept
    refused = live.reef("versions", "install", "v2", "-s", "kept", "--json")
    assert refused.status == 5
    error = json.loads(refused.err.splitlines()[-1])["error"]
    assert error["message"] == "scenario kept is pinned to v1 for pi, so v2 is not installed"
    again = live.reef("versions", "pin", "v3", "-s", "kept")
    assert (again.status, "v3 of scenario kept is pending" in again.err) == (5, True)
    moved = live.reef("versions", "rollback", "v1", "-s", "kept", "--yes")
    assert "what is installed stays at v1 (pinned)" in moved.err
    assert live.reef("versions", "unpin", "-s", "kept").out == "unpinned scenario kept · v4 is served\n"
    empty = live.reef("versions", "unpin", "-s", "kept")
    assert (empty.status, empty.err.splitlines()[0]) == (1, "error: no version of scenario kept is pinned")


def test_a_session_neither_pins_nor_unpins(live: Live) -> None:
    for words in (("pin", "v1"), ("unpin",)):
        refused = live.reef("versions", *words, "-s", "grown", env={"REEF_SESSION": "x"})
        assert refused.status == 5, refused.all
