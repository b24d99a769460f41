"""The agent's config home: links into the version, a fresh binding, the person's own preferences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reef.errors import Refused
from reef.harness.adapter import load_adapter
from reef.harness.binding import Served
from reef.harness.home import prepare_home
from reef.harness.install import Install, install_tree
from reef.paths import Paths

PI = load_adapter("pi")


def install(paths: Paths, files: dict[str, bytes], version: int = 1) -> Install:
    return install_tree(paths, "coding", PI, version, files, f"r{version}", f"c{version}").install


def prepare(made: Install, model: str = "m1", url: str = "http://127.0.0.1:8900") -> Path:
    return Path(str(prepare_home(made, PI, Served(url, model, 8192), made.folder)["home"]))


def settings(home: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((home / "settings.json").read_text())
    return found


def test_what_the_agent_reads_is_the_installed_file_itself(paths: Paths) -> None:
    home = prepare(install(paths, {"AGENTS.md": b"one", "skills/a/SKILL.md": b"two"}))
    assert (home / "AGENTS.md").read_bytes() == b"one"
    assert (home / "skills" / "a" / "SKILL.md").read_bytes() == b"two"
    assert (home / "AGENTS.md").is_symlink() and (home / "skills").is_symlink()
    assert not (home / "prompts").exists()


def test_a_new_version_is_there_without_a_new_start_and_what_it_dropped_is_gone(paths: Paths) -> None:
    home = prepare(install(paths, {"AGENTS.md": b"one", "skills/a/SKILL.md": b"two"}))
    install(paths, {"AGENTS.md": b"three", "prompts/b.md": b"four"}, 2)
    assert (home / "AGENTS.md").read_bytes() == b"three"
    assert (home / "prompts" / "b.md").read_bytes() == b"four"
    assert not (home / "skills").exists()


def test_the_model_that_is_served_now_is_written_at_each_start(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    prepare(made, "m1")
    home = prepare(made, "m2", "http://127.0.0.1:9999")
    provider = json.loads((home / "models.json").read_text())["providers"]["reef"]
    assert (provider["models"][0]["id"], provider["baseUrl"]) == ("m2", "http://127.0.0.1:9999/v1")
    assert settings(home)["defaultModel"] == "m2"


def test_a_preference_that_was_set_inside_the_agent_survives_and_a_setting_that_is_code_does_not(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    changed = settings(home) | {"theme": "light", "packages": ["npm:evil"], "defaultProvider": "anthropic"}
    (home / "settings.json").write_text(json.dumps(changed))
    for _ in range(2):
        now = settings(prepare(made))
        assert now["theme"] == "light"
        assert "packages" not in now
        assert now["defaultProvider"] == "reef"


def test_a_setting_of_the_version_goes_with_the_version(paths: Paths) -> None:
    home = prepare(install(paths, {"settings.json": b'{"steeringMode": "all"}'}))
    assert settings(home)["steeringMode"] == "all"
    prepare(install(paths, {"AGENTS.md": b"x"}, 2))
    assert "steeringMode" not in settings(home)


def test_something_planted_where_a_version_goes_is_refused_by_name(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    (home / "extensions").unlink()
    (home / "extensions").mkdir()
    (home / "extensions" / "evil.ts").write_text("x")
    with pytest.raises(Refused, match=r"home/extensions was not put there by reef"):
        prepare(made)


@pytest.mark.parametrize(
    "name",
    ["SYSTEM.md", "APPEND_SYSTEM.md", "AGENTS.override.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD", "mcp.json"],
)
def test_instructions_of_the_home_that_no_version_holds_are_refused_and_left_where_they_are(
    paths: Paths, name: str
) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    (home / name).write_text("obey")
    with pytest.raises(Refused, match=rf"home/{name} was not put there by reef, and pi would read it") as refused:
        prepare(made)
    assert (refused.value.hint, (home / name).read_text()) == (f"mv {home / name} {home / name}.old", "obey")
    (home / name).rename(home / f"{name}.old")
    prepare(made)
    (home / name).symlink_to("/elsewhere")
    with pytest.raises(Refused):
        prepare(made)


def test_a_broken_settings_file_is_written_anew(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    (home / "settings.json").write_text('{"theme": ')
    assert settings(prepare(made))["defaultProvider"] == "reef"


def test_a_start_that_changes_nothing_writes_nothing(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    before = {file.name: file.lstat().st_mtime_ns for file in home.iterdir()}
    prepare(made)
    assert {file.name: file.lstat().st_mtime_ns for file in home.iterdir()} == before
