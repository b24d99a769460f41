"""One broken adapter or recipe of the person's own: it is shown with the reason, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reef.cli.standing import lines_of
from tests.cli import shell
from tests.http.running import Home

BROKEN = "name = ["


@pytest.fixture
def broken(home: Home) -> Iterator[Home]:
    """A home with an adapter and a recipe that are no TOML."""
    files = [home.paths.config / "adapters" / "broken" / "adapter.toml"]
    files += [home.paths.config / "recipes" / "broken" / "recipe.toml"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(BROKEN)
    yield home
    for file in files:
        file.unlink()
        file.parent.rmdir()


def test_a_broken_adapter_is_shown_with_the_reason_beside_the_others(broken: Home) -> None:
    status = broken.nobody.get("/reef/status").json()
    agents = {row["name"]: row for row in status["agents"]}
    assert agents["pi"]["problem"] is None
    assert "adapters/broken/adapter.toml cannot be read: " in agents["broken"]["problem"]
    assert any("✗" in line and "adapter.toml cannot be read" in line for line in lines_of(status))
    rows = {row["name"]: row for row in broken.nobody.get("/reef/harness/adapters").json()["adapters"]}
    assert rows["pi"]["dialect"] == "chat"
    assert (rows["broken"]["installed"], rows["broken"]["problem"]) == (False, agents["broken"]["problem"])
    listed = shell.reef("agents", "list", env=broken.env)
    assert (listed.status, "broken" in listed.out, agents["broken"]["problem"] in listed.err) == (0, True, True)


def test_a_broken_recipe_is_shown_with_the_reason_and_no_scenario_gets_it(broken: Home) -> None:
    rows = {row["name"]: row for row in broken.person.get("/reef/recipes").json()["recipes"]}
    assert rows["reefine"]["problem"] is None
    assert "recipes/broken/recipe.toml cannot be read: " in rows["broken"]["problem"]
    reply = broken.person.post("/reef/scenarios", json={"name": "doomed", "recipe": "broken"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "config")
    assert "recipe.toml cannot be read" in reply.json()["error"]["message"]
    names = {row["name"] for row in broken.nobody.get("/reef/scenarios").json()["scenarios"]}
    assert "doomed" not in names
    listed = shell.reef("recipes", "list", env=broken.env)
    assert listed.status == 0 and "reefine" in listed.out
    assert "recipes/broken/recipe.toml cannot be read" in listed.err
