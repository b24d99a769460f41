"""What plain agents keep in the person's home: looked at, and never written."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.harness import own_places
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from reef.paths import Paths

CODEX = load_adapter("codex")


@pytest.fixture
def own(sealed_room: Path) -> Path:
    """A person's own folder for Codex."""
    folder = sealed_room / ".codex"
    (folder / "skills" / "mine").mkdir(parents=True)
    (folder / "config.toml").write_text('model = "other"\n')
    (folder / "skills" / "mine" / "SKILL.md").write_text("mine")
    (folder / "link").symlink_to("/nowhere")
    return folder


def test_a_change_in_one_file_changes_the_sum_of_its_folder_and_is_named(own: Path, paths: Paths) -> None:
    own_places.note("started", CODEX, paths)
    (before,) = own_places.look(CODEX, paths)
    assert (before.place, before.there, before.files) == ("~/.codex", True, 3)
    assert own_places.changed(CODEX, paths) == {"~/.codex": []}
    (own / "skills" / "mine" / "SKILL.md").write_text("sped")
    (own / "link").unlink()
    (own / "new").write_text("x")
    (after,) = own_places.look(CODEX, paths)
    assert after.sha256 != before.sha256
    assert own_places.changed(CODEX, paths) == {"~/.codex": ["link", "new", "skills/mine/SKILL.md"]}


def test_the_first_install_is_kept_and_the_last_start(own: Path, paths: Paths) -> None:
    def install(version: int) -> None:
        install_tree(paths, "coding", CODEX, version, {"AGENTS.md": b"%d" % version}, f"r{version}", f"c{version}")

    install(1)
    (first,) = own_places.noted("installed", CODEX, paths).values()
    (own / "config.toml").write_text("changed\n")
    install(2)
    assert own_places.noted("installed", CODEX, paths) == {"~/.codex": first}
    own_places.note("started", CODEX, paths)
    assert own_places.noted("started", CODEX, paths)["~/.codex"].sha256 != first.sha256


def test_a_file_that_looks_the_same_is_not_read_again(own: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    own_places.note("started", CODEX, paths)
    opened: list[str] = []
    real = Path.open

    def counting(self: Path, *arguments: object, **named: object) -> object:
        opened.append(self.name)
        return real(self, *arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", counting)
    own_places.look(CODEX, paths)
    assert "config.toml" not in opened
    (own / "config.toml").write_text("other again\n")
    own_places.look(CODEX, paths)
    assert "config.toml" in opened


def test_a_place_that_is_not_there_or_cannot_be_read_is_no_error(paths: Paths, sealed_room: Path) -> None:
    (look,) = own_places.look(CODEX, paths)
    assert (look.there, look.files) == (False, 0)
    own_places.note("started", CODEX, paths)
    elsewhere = sealed_room / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "loop").symlink_to("loop")
    looks = own_places.look(CODEX, paths, {"HOME": str(sealed_room), "CODEX_HOME": str(elsewhere)})
    assert [(look.place, look.files) for look in looks] == [("~/.codex", 0), (str(elsewhere), 1)]


def test_what_an_agent_reads_whatever_its_home_is_found_where_it_is(sealed_room: Path) -> None:
    assert own_places.leaks(CODEX) == []
    (sealed_room / ".agents" / "skills").mkdir(parents=True)
    assert own_places.leaks(CODEX) == [sealed_room / ".agents" / "skills"]


def test_a_start_is_noted_while_the_agent_runs_and_a_full_disk_does_not_stop_it(own: Path, paths: Paths) -> None:
    with own_places.noting_start(CODEX, paths):
        pass
    assert own_places.noted("started", CODEX, paths)["~/.codex"].files == 3
    kept = paths.data / "own"
    (kept / "codex.json").unlink()
    kept.rmdir()
    kept.write_text("in the way")
    with own_places.noting_start(CODEX, paths):
        pass
    assert own_places.noted("started", CODEX, paths) == {}
