"""Promote, roll back, install: shown before, confirmed, and bound to the head that was seen."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.cli.conftest import Live
from tests.cli.grown import RULE


def versions(live: Live, scenario: str) -> list[tuple[int, str, bool]]:
    """(number, operation, whether it is the head), newest first."""
    rows: list[dict[str, Any]] = live.json("versions", "list", "-s", scenario)
    return [(row["version"], row["operation"], row["current"]) for row in rows]


def test_a_rollback_shows_what_changes_and_asks(live: Live) -> None:
    status, shown = live.on_terminal(
        "versions", "rollback", "v1", "-s", "back", keys=[("[y/N]", "n\r")], env={"NO_COLOR": "1"}
    )
    assert status == 1
    assert f"- {RULE}" in shown
    assert "nothing was changed" in shown
    assert versions(live, "back")[0] == (3, "training", False)
    status, shown = live.on_terminal(
        "versions", "rollback", "v1", "-s", "back", keys=[("[y/N]", "y\r")], env={"NO_COLOR": "1"}
    )
    assert status == 0
    assert "rolled back to v1 · scenario back is now v4" in shown
    assert "reef versions rollback v2 -s back" in shown
    assert versions(live, "back")[0] == (4, "rollback", True)


def test_a_decision_without_terminal_needs_yes(live: Live) -> None:
    refused = live.reef("versions", "promote", "v3", "-s", "lead")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith("hint: reef versions promote v3 --yes\n")
    done = live.reef("versions", "promote", "v3", "-s", "lead", "--yes")
    assert done.out == "promoted v3 · scenario lead is now v4\n"
    assert versions(live, "lead")[0] == (4, "promote", True)


def test_only_a_pending_version_is_promoted_and_nobody_is_asked_about_another(live: Live) -> None:
    shown = live.reef("versions", "promote", "v1", "-s", "grown")
    assert (shown.status, shown.out) == (1, "")
    assert shown.err == (
        "error: v1 of scenario grown is not pending, and only a pending version is promoted\n\n"
        "hint: reef versions rollback v1 -s grown\n"
    )
    served = live.reef("versions", "promote", "v2", "-s", "grown")
    assert (served.status, "v2 of scenario grown is served already" in served.err) == (1, True)


def test_a_version_that_is_not_there_is_named_with_the_newest(live: Live) -> None:
    for verb in ("promote", "rollback", "install"):
        shown = live.reef("versions", verb, "v99", "-s", "grown", "--yes")
        assert shown.status == 1
        assert shown.err.startswith("error: scenario grown has no version v99 (versions: v1 to v3)")
    assert live.reef("versions", "rollback", "latest", "-s", "grown").status == 1


def test_a_lost_race_changes_nothing_and_says_who_won(live: Live) -> None:
    key = live.paths.person_key.read_text().strip()

    def other_window() -> None:
        reply = httpx.post(
            f"{live.url}/reef/scenarios/race/rollback",
            json={"version": 1},
            headers={"authorization": f"Bearer {key}"},
            timeout=30,
        )
        assert reply.status_code == 200

    class Answer(str):
        """Typed only after somebody else has decided."""

        def encode(self, *_: Any) -> bytes:  # type: ignore[override]
            other_window()
            return b"y\r"

    status, shown = live.on_terminal(
        "versions", "promote", "v3", "-s", "race", keys=[("[y/N]", Answer("y"))], env={"NO_COLOR": "1"}
    )
    assert status == 1, shown
    assert "v4" in shown.splitlines()[-3]
    assert versions(live, "race")[0] == (4, "rollback", True)


def test_a_pending_version_is_installed_only_after_a_yes(live: Live) -> None:
    refused = live.reef("versions", "install", "v3", "-s", "yes", "--json")
    assert refused.status == 2
    assert "needs your yes" in json.loads(refused.err.splitlines()[-1])["error"]["message"]
    assert "export default" in refused.err
    status, shown = live.on_terminal("versions", "install", "v3", "-s", "yes", keys=[("[y/N]", "n\r")])
    assert (status, "nothing was changed" in shown) == (1, True)
    assert versions(live, "yes")[0] == (3, "training", False)
