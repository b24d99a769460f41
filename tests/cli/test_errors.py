"""What a person sees when something is wrong: one sentence, a hint to paste, the right status, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.paths import Paths
from tests.cli.shell import REEF, on_terminal, reef

NEEDS_DAEMON = (
    ("status",),
    ("agents", "list"),
    ("records", "list"),
    ("records", "show", "0" * 32),
    ("sessions", "list"),
    ("scenarios", "list"),
    ("asks", "list"),
    ("asks", "show", "1"),
    ("asks", "watch", "1"),
    ("steps", "list"),
    ("steps", "show", "1"),
    ("versions", "list"),
    ("versions", "show", "v1"),
    ("versions", "diff"),
)


@pytest.mark.parametrize("command", NEEDS_DAEMON, ids=" ".join)
def test_a_reading_command_without_daemon_ends_with_3_and_says_what_to_type(command: tuple[str, ...]) -> None:
    shown = reef(*command)
    assert (shown.status, shown.out) == (3, "")
    assert shown.err == "error: the daemon is not running\n\nhint: reef up\n"


WRITING = (
    ("report", "0" * 32, "--score", "1"),
    ("ask", "be brief"),
    ("scenarios", "create", "x"),
    ("versions", "promote", "v1", "--yes"),
    ("versions", "install"),
    ("agents", "add", "pi"),
    ("asks", "cancel", "1"),
    ("steps", "cancel", "1"),
)


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_a_writing_command_does_not_start_the_daemon_when_autostart_is_off(command: tuple[str, ...]) -> None:
    shown = reef(*command, env={"REEF_AUTOSTART": "false"})
    assert (shown.status, shown.out) == (3, "")
    assert "hint: reef up" in shown.err


def test_with_json_an_error_is_one_object_on_stderr() -> None:
    shown = reef("status", "--json")
    assert (shown.status, shown.out) == (3, "")
    error = json.loads(shown.err)["error"]
    assert error == {"code": "daemon_unreachable", "message": "the daemon is not running", "hint": "reef up"}


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("vresions",), "there is no command 'vresions'", "reef versions"),
        (("exit-code",), "there is no command 'exit-code'", "reef help exit-codes"),
        (("--jsn",), "there is no flag '--jsn'", "reef --help"),
        (("paths", "--jsn"), "there is no flag --jsn", "reef paths --help"),
        (("versions", "lst"), "there is no command 'lst'", "reef versions --help"),
        (("records", "show"), "missing argument 'RECEIPT'", "reef records show --help"),
        (("steps", "show", "x"), "invalid value for 'STEP'", "reef steps show --help"),
        (("completion", "tcsh"), "there is no completion for 'tcsh'", "reef completion bash|zsh|fish"),
        (("report", "0" * 32), "a report needs a score, feedback or metadata", "reef report RECEIPT --score 1"),
        (("report", "--score", "nan"), "the score nan is not a finite number", "reef report RECEIPT --score 1"),
        (("ask", "x", "--requires", "gh"), "'gh' is not KIND:NAME", "reef ask --help"),
        (("help", "exitcodes"), "there is no help on 'exitcodes'", "reef help exit-codes"),
        (("scenarios", "create", "x", "--recipe", "refine"), "there is no recipe 'refine'", "reef recipes list"),
        (("scenarios", "create", "x", "--engine", "ollama"), "'ollama' is neither `embedded`, `ollama/ID`", "reef"),
        (("tui",), "reef tui needs a terminal", "reef status"),
        (("good", "--nto"), "there is no flag --nto", "reef good --help"),
        (("records", "show", "ab", "--raw", "--request"), "--request, --response, --raw and --json", "reef records"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_command_line_ends_with_2_and_a_hint(arguments: tuple[str, ...], message: str, hint: str) -> None:
    shown = reef(*arguments)
    assert (shown.status, shown.out) == (2, "")
    first, blank, last = shown.err.rstrip("\n").split("\n")
    assert first.startswith(f"error: {message}")
    assert blank == ""
    assert last.startswith(f"hint: {hint}")


@pytest.mark.parametrize("receipt", ["xyz", "9f3", "9" * 33, "../../etc"])
def test_what_is_no_receipt_is_refused_before_anything_is_asked(receipt: str) -> None:
    shown = reef("records", "show", receipt)
    assert shown.status == 1
    assert "is not a receipt" in shown.err


@pytest.mark.parametrize("name", ["..", "a/b", "HEAD", "x.lock", "-x", "a" * 65, "a b"])
def test_a_bad_scenario_name_is_refused_with_a_suggestion(name: str) -> None:
    shown = reef("scenarios", "create", "--", name)
    assert shown.status == 1
    assert "is not a scenario name" in shown.err
    assert "hint: use '" in shown.err


def test_a_bad_name_in_the_variable_is_refused_too() -> None:
    shown = reef("asks", "list", env={"REEF_SCENARIO": "a/b"})
    assert shown.status == 1
    assert "'a/b' is not a scenario name" in shown.err


def test_a_fault_of_reef_keeps_its_traceback_in_a_file(paths: Paths) -> None:
    paths.current_scenario.write_bytes(b"\xff")
    shown = reef("use")
    assert shown.status == 1
    assert "Traceback" not in shown.all
    assert "reef met a fault of its own: UnicodeDecodeError" in shown.err
    kept = paths.state / "cli-error.log"
    assert str(kept) in shown.err
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_reef_debug_shows_the_traceback() -> None:
    shown = reef("status", env={"REEF_DEBUG": "1"})
    assert shown.status == 3
    assert "Traceback (most recent call last)" in shown.err
    assert shown.err.endswith("error: the daemon is not running\n\nhint: reef up\n")
    assert "Traceback" not in reef("status", env={"REEF_DEBUG": "0"}).err


def test_a_reader_that_goes_away_is_no_error() -> None:
    quick = subprocess.run(
        f"{REEF} --help | head -1; {REEF} help words | head -1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert quick.stderr == ""
    assert len(quick.stdout.splitlines()) == 2


def test_a_pipe_that_nobody_reads_ends_quietly() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([REEF, "help", "words"], stdout=write_end, stderr=subprocess.PIPE, timeout=60)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_ends_with_130_and_no_traceback(started: Callable[..., subprocess.Popen[str]], paths: Paths) -> None:
    paths.daemon_log.write_text("one\n")
    child = started("logs", "-f")
    assert child.stdout is not None
    assert child.stdout.readline() == "one\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (130, "")


def test_an_error_is_coloured_on_a_terminal_only_and_no_color_wins() -> None:
    status, shown = on_terminal("status")
    assert status == 3
    assert shown.startswith("\x1b[31merror:\x1b[0m the daemon is not running")
    for env in ({"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("status", env=env)[1]
    assert "\x1b" not in reef("status").err
    assert "\x1b[31m" in reef("status", env={"FORCE_COLOR": "1"}).err
    assert "\x1b" not in reef("status", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).err


def test_a_hostile_argument_is_shown_and_not_sent(tmp_path: Path) -> None:
    hostile = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e[/red][bold]"
    for arguments in ((hostile,), ("use", hostile), ("help", hostile), ("records", "show", hostile)):
        _, shown = on_terminal(*arguments, env={"NO_COLOR": "1"})
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(shown), arguments
        assert "[bold]" in shown or "x1b" in shown
