"""What a version needs of the machine is shown, checked before it is installed, and again before the agent starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from reef import needs
from reef.errors import Refused
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from tests.cli.conftest import Live
from tests.fakes.agent_place import place_fake_agent


def test_what_a_version_needs_is_shown(live: Live) -> None:
    shown = live.reef("versions", "show", "v3", "-s", "needy").out.splitlines()
    assert "needs    env FOO_TOKEN (not set)" in shown
    assert "needs    service db: it answers" in shown
    assert "needs    env FOO_TOKEN" in live.reef("versions", "show", "v3", "-s", "needy", env={"FOO_TOKEN": "x"}).out


def test_a_version_whose_variable_is_not_set_is_not_installed(live: Live) -> None:
    refused = live.reef("versions", "install", "v3", "-s", "needy", "--yes")
    assert (refused.status, refused.out) == (5, "")
    assert refused.err.endswith(
        "error: v3 needs the variable FOO_TOKEN, which is not set\n\nhint: export FOO_TOKEN=…\n"
    )
    assert [row["current"] for row in live.json("versions", "list", "-s", "needy")] == [False, True, False]


def test_what_only_the_person_can_know_is_asked(live: Live) -> None:
    env = {"FOO_TOKEN": "x", "NO_COLOR": "1"}
    refused = live.reef("versions", "install", "v3", "-s", "needy", env=env)
    assert (refused.status, "this needs your yes" in refused.err) == (2, True)
    keys = [("does v3 get what it needs? [y/N]", "n\r")]
    status, shown = live.on_terminal("versions", "install", "v3", "-s", "needy", keys=keys, env=env)
    assert (status, "nothing was changed" in shown, "needs  service db: it answers" in shown) == (1, True, True)


@pytest.fixture
def installed(live: Live) -> Iterator[Live]:
    """v3 of `needy` as it is installed for pi, with a program in pi's place."""
    pi = load_adapter("pi")
    place_fake_agent(pi, live.paths)
    install_tree(live.paths, "needy", pi, 3, {"AGENTS.md": b"be brief\n"}, "r3", "c3")
    yield live
    live.paths.last_install.unlink()
    (live.paths.bin / "reef-pi").unlink()
    shutil.rmtree(live.paths.agents)


def test_the_agent_does_not_start_without_what_its_version_needs(installed: Live) -> None:
    command = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", "-p", "hi"]
    without = os.environ | installed.env | {"REEF_SCENARIO": "needy"}
    refused = subprocess.run(command, env=without, capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "v3 of scenario needy needs the variable FOO_TOKEN" in refused.stderr
    assert refused.stderr.endswith("hint: export FOO_TOKEN=…\n")
    given = without | {"FOO_TOKEN": "x"}
    ran = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    # The fake agent was started, whatever it makes of its arguments.
    assert (ran.returncode != 5, "FOO_TOKEN" in ran.stderr) == (True, False), ran.stderr
    helped = subprocess.run(
        [*command[:5], "--help"], env=given, capture_output=True, text=True, timeout=60, check=False
    )
    first, *rest = helped.stdout.splitlines()
    assert first == "Words of reef's own, before those of pi (reef-pi help explains them):"
    assert "evolve" in rest[0].split()


def test_a_program_is_looked_for_on_the_path() -> None:
    needs.refuse_unmet("v2", [{"kind": "binary", "name": "sh"}])
    with pytest.raises(Refused, match="v2 needs the program nosuchprogram, which is not on the PATH"):
        needs.refuse_unmet("v2", [{"kind": "binary", "name": "nosuchprogram"}])
    assert needs.shown({"kind": "binary", "name": "nosuchprogram"}) == "binary nosuchprogram (not on the PATH)"


def test_foreign_words_of_a_need_steer_no_terminal() -> None:
    hostile = {"kind": "service", "name": "db\x1b[2J", "prompt": "run\nthis\x07"}
    assert not {"\x1b", "\n", "\x07"} & set(needs.shown(hostile))
