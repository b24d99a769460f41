"""A daemon whose repository of versions was lost: it says so wherever versions are asked for, and serves calls."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from reef.cli.standing import lines_of
from tests.http.running import Home, chat, wait_for


def test_a_lost_repository_is_said_and_calls_are_still_served(new_home: Callable[..., Home]) -> None:
    home = new_home(flags=[["recipe.implementation", "reefine"]]).start()
    home.stop()
    shutil.rmtree(home.paths.versions_git)
    home.start()

    def listed() -> dict[str, str]:
        row = home.nobody.get("/reef/scenarios").json()["scenarios"][0]
        return dict(row) if row["state"] == "broken" else {}

    assert "there is no commit" in wait_for(listed)["problem"]
    for reply in (home.nobody.get("/reef/harness"), home.nobody.post("/reef/train", json={"text": "be brief"})):
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (503, "versions_damaged")
        assert error["message"].startswith("the versions of scenario 'default' are broken: v1 cannot be read: ")
        assert error["hint"] == "reef versions list --scenario default"
    assert any("✗ broken: v1 cannot be read" in line for line in lines_of(home.nobody.get("/reef/status").json()))
    reply = chat(home.nobody, "hi")
    assert reply.status_code == 200 and "x-reef-agent-record-id" in reply.headers


def test_a_database_that_lost_everything_ends_the_start_with_a_sentence(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    home.stop()
    home.paths.database.unlink()
    process = home.launch(foreground=True)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"holds no scenario, but versions.git beside it holds versions of default" in said
    assert b"Traceback" not in said
