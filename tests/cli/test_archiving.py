"""`reef scenarios archive` and `restore`: out of the lists and of use, and back with everything."""

from __future__ import annotations

from tests.cli.conftest import Live


def listed(live: Live, *flags: str) -> list[str]:
    return [row["name"] for row in live.json("scenarios", "list", *flags)]


def test_an_archived_scenario_is_listed_apart_refused_by_name_and_brought_back(live: Live) -> None:
    receipt = live.chat("hello", "shelved")
    assert live.reef("scenarios", "list", "--archived").err == "no scenario is archived\n"
    done = live.reef("scenarios", "archive", "shelved")
    assert (done.out, done.err) == ("scenario shelved archived\n", "undo   reef scenarios restore shelved\n")
    assert "shelved" not in listed(live) and listed(live, "--archived") == ["shelved"]
    refused = live.reef("report", receipt, "--score", "1", "-s", "shelved")
    assert (refused.status, refused.err.splitlines()[-1]) == (1, "hint: reef scenarios restore shelved")
    assert [row["agent_record_id"] for row in live.json("records", "list", "-s", "shelved")] == [receipt]
    assert live.json("scenarios", "restore", "shelved") == {"scenario": "shelved", "archived": False}
    assert "shelved" in listed(live)
    assert live.reef("report", receipt, "--score", "1").status == 0
