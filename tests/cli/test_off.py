"""`reef off`: stops the daemon, and shows that plain agents are as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reef.harness import own_places
from reef.harness.adapter import load_adapter
from reef.paths import Paths
from tests.cli.shell import reef

CODEX = load_adapter("codex")


@pytest.fixture
def own(sealed_room: Path, paths: Paths) -> Path:
    """A person's own folder for Codex, as it was when reef was installed for it and at the last start."""
    folder = sealed_room / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "other"\n')
    own_places.note("installed", CODEX, paths)
    own_places.note("started", CODEX, paths)
    return folder


def test_without_a_daemon_it_says_so_and_that_plain_agents_were_never_changed(paths: Paths) -> None:
    done = reef("off")
    first, second = done.out.splitlines()
    assert (done.status, first) == (0, "the daemon is not running")
    assert second.endswith("without reef were never changed; reef off --prove shows it")


def test_the_proof_is_the_checksum_of_every_place_before_and_after(own: Path) -> None:
    (row,) = [row for row in json.loads(reef("off", "--prove", "--json").out)["places"] if row["agent"] == "codex"]
    assert (row["place"], row["files"], row["changed"]) == ("~/.codex", 1, [])
    assert row["installed"] == row["started"] == row["before"] == row["now"]
    shown = reef("off", "--prove").out
    (line,) = [line for line in shown.splitlines() if line.startswith("codex")]
    assert line.split()[1:] == ["~/.codex", "1", *[row["now"][:12]] * 4]
    assert shown.endswith("reef itself writes to none of these places; nothing there was changed\n")


def test_what_the_plain_agent_changed_is_named(own: Path) -> None:
    (own / "config.toml").write_text("mine\n")
    shown = reef("off", "--prove").out
    assert "~/.codex: 1 file changed since reef looked last: config.toml\n" in shown
    assert shown.endswith("the plain agent writes there, and so does --alongside\n")


def test_an_agent_cannot_turn_reef_off(paths: Paths) -> None:
    assert reef("off", env={"REEF_SESSION": "x"}).status == 5
