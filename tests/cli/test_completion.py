"""Completion: every word that may come next, ids from the database, and silence when something is wrong."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from reef.cli import table
from reef.paths import Paths
from tests.cli.conftest import Live
from tests.cli.shell import REEF, reef


def words(live: Live | None, *typed: str) -> list[str]:
    """The candidates after `typed`, the last of which is being typed."""
    done = live.reef("__complete", *typed) if live else reef("__complete", *typed)
    assert (done.status, done.err) == (0, "")
    return [line.partition("\t")[0] for line in done.out.splitlines()]


def test_commands_verbs_topics_and_shells_come_from_the_table() -> None:
    assert words(None, "") == [entry.name for entry in table.COMMANDS]
    assert words(None, "ver") == ["versions"]
    versions = table.find("versions")
    assert versions is not None
    assert words(None, "versions", "") == [*versions.verbs]
    assert words(None, "versions", "un") == ["unpin"]
    assert words(None, "versions", "bisect", "s") == ["start", "skip", "status"]
    assert words(None, "completion", "") == list(table.SHELLS)
    assert {"exit-codes", "versions"} <= set(words(None, "help", ""))
    assert words(None, "nonsense", "") == []


def test_flags_come_from_the_command() -> None:
    assert {"--adapter", "--scenario", "--yes", "--json", "--help"} <= set(words(None, "versions", "install", "--"))
    assert {"--recipe", "--model", "--reef.port", "--inference.upstream-url"} <= set(words(None, "serve", "--"))
    assert words(None, "serve", "--reef.po") == ["--reef.port"]
    assert "--json" in words(None, "asks", "--")


def test_ids_come_from_the_database(live: Live) -> None:
    receipt = live.chat("complete me", "completed")
    assert "grown" in words(live, "use", "")
    assert words(live, "versions", "list", "--scenario", "gro") == ["grown"]
    assert words(live, "versions", "install", "-s", "grown", "") == ["v3", "v2", "v1"]
    assert words(live, "versions", "bisect", "good", "-s", "grown", "") == ["v3", "v2", "v1"]
    assert words(live, "versions", "import", "-s", "grown", "") == []
    assert words(live, "asks", "show", "-s", "grown", "") == ["3", "2", "1"]
    assert words(live, "steps", "show", "-s", "grown", "") == ["3", "2", "1"]
    assert words(live, "records", "show", receipt[:6]) == [receipt]


def test_an_agents_session_is_told_no_ids(live: Live) -> None:
    done = live.reef("__complete", "records", "show", "", env={"REEF_SESSION": "reef-" + "x" * 43})
    assert (done.status, done.out) == (0, "")


def test_a_broken_database_is_met_with_silence(paths: Paths) -> None:
    paths.database.write_bytes(b"this is no database" * 100)
    assert words(None, "use", "") == []


def test_candidates_are_bounded_and_fast(live: Live) -> None:
    for number in range(3):
        live.chat(f"call {number}", "completed")
    start = time.perf_counter()
    assert 0 < len(words(live, "records", "show", "")) <= 50
    assert time.perf_counter() - start < 5


SHELL_TESTS = {
    "bash": 'source <(reef completion bash); COMP_WORDS=(reef versions in); COMP_CWORD=2; _reef; echo "$COMPREPLY"',
    "zsh": "autoload -U compinit; compinit -u; source <(reef completion zsh); whence -w _reef; echo install",
    "fish": "reef completion fish | source; complete -C 'reef versions in'",
}


# bash is always there; zsh and fish are tried where the machine has them.
@pytest.mark.parametrize("shell", [name for name in table.SHELLS if name == "bash" or shutil.which(name)])
def test_the_script_works_in_its_shell(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    assert program is not None
    path = f"{Path(REEF).parent}:/usr/local/bin:/usr/bin:/bin"
    done = subprocess.run(
        [program, "-c", SHELL_TESTS[shell]],
        capture_output=True,
        text=True,
        env={"PATH": path, "HOME": str(tmp_path)},
        timeout=60,
    )
    assert "install" in done.stdout, done.stderr
    assert "error" not in done.stderr
