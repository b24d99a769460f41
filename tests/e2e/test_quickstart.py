"""`reef quickstart` beside a scenario that is in use, and its proof where there is nothing to prove."""

from __future__ import annotations

import pytest

from tests.e2e.home import Home, requests_of

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

RULE = "Always answer in one short sentence."


def test_without_a_first_run_there_is_nothing_to_prove(home: Home) -> None:
    ran = home.sh("reef quickstart --prove")
    assert ran.returncode == 5
    assert "hint: reef quickstart" in ran.stderr


def test_the_quickstart_proves_itself_and_leaves_the_scenario_in_use_alone(home: Home) -> None:
    url, log = home.fake_upstream()
    home.ok(f"reef up --recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok("reef scenarios create coding")
    home.ok("reef agents add pi -s coding")

    said = home.ok("reef quickstart", timeout=250)
    assert f"+ {RULE}" in said
    assert said.index("1 serve") < said.index("2 observe") < said.index("3 grow") < said.index("4 commit")
    assert said.index("4 commit") < said.index("proof ") < said.index("next ") < said.index("undo ")
    assert "reef versions rollback v1 --scenario quickstart" in said
    # Everything was answered by the embedded model, nothing by the one that the daemon uses otherwise.
    assert requests_of(log) == []
    assert [row["version"] for row in home.json("reef versions list -s coding")] == [1]
    home.ok('reef-pi -p "hi"')
    (newest, *_) = home.json("reef records list")
    assert newest["scenario"] == "coding"

    receipt = said.split("proof ")[1].split("receipt ")[1].split()[0]
    assert RULE in home.ok(f"reef records show {receipt} --request")
    row = home.json(f"reef records show {receipt}")
    assert (row["scenario"], row["source"], row["version"], row["state"]) == ("quickstart", "agent", 2, "complete")
    rated = said.split("report stored on ")[1].split()[0]
    assert home.json(f"reef records show {rated}")["score"] == 1.0

    assert home.sh("reef quickstart --prove").returncode == 0
    home.ok("reef versions rollback v1 --scenario quickstart --yes")
    home.ok("reef versions install --scenario quickstart --yes")
    assert home.sh("reef quickstart --prove").returncode == 5
