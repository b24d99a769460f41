"""The wrapper before and after an agent on a terminal: what it started, and how to go on."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator

import pytest

from reef.client import read_discovery
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from reef.processes import is_alive
from tests.fakes.agent_place import place_fake_agent
from tests.http.running import Home

AGENT = """
import json, os, pathlib, subprocess, sys
if "--start-another" in sys.argv:
    sys.exit(subprocess.run([sys.executable, "-P", "-m", "reef.harness.wrapper", "pi"]).returncode)
if "--leave-one" in sys.argv:
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    print("left", left.pid)
folder = pathlib.Path(os.environ["PI_CODING_AGENT_DIR"], "sessions", "here")
folder.mkdir(parents=True, exist_ok=True)
(folder / "x.jsonl").write_text(json.dumps({"type": "session", "id": "0123-abc", "cwd": os.getcwd()}) + chr(10))
print("To resume this session:\\npi --session 0123-abc")
sys.exit(3 if "--fail" in sys.argv else 0)
"""


@pytest.fixture
def with_agent(new_home: Callable[..., Home]) -> Iterator[Home]:
    """A home with an agent in pi's place that writes a session, and a daemon that is down again."""
    home = new_home().start()
    pi = load_adapter("pi", home.paths)
    place_fake_agent(pi, home.paths).write_text(AGENT)
    install_tree(home.paths, "default", pi, 1, {"AGENTS.md": b"be brief\n"}, "r1", "c1")
    home.stop()
    yield home
    if (left := read_discovery(home.paths)) is not None:
        os.kill(left["pid"], 9)


def on_terminal(home: Home, *arguments: str) -> tuple[int, list[str]]:
    """Run the wrapper on a terminal. Returns its status and the lines that it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home.folder)
        words = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", *arguments]
        os.execve(sys.executable, words, home.env | {"TERM": "xterm", "LANG": "C.UTF-8"})
    got = b""
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:
            break
        got += block
    _, raw = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(raw), got.decode().replace("\r\n", "\n").splitlines()


def test_the_wrapper_says_what_it_started_and_how_to_go_on_with_reef(with_agent: Home) -> None:
    status, lines = on_terminal(with_agent)
    assert status == 0, lines
    assert lines[0].startswith("daemon started · http://127.0.0.1:")
    assert lines[0].endswith(" · engine upstream fake-model (as the last reef up)")
    assert lines[-2:] == ["pi --session 0123-abc", "with reef: reef-pi --session 0123-abc"]
    status, lines = on_terminal(with_agent, "--fail")
    assert (status, lines[-1]) == (3, "pi --session 0123-abc")
    assert on_terminal(with_agent, "-p", "hi")[1][-1] == "pi --session 0123-abc"


def test_an_agent_that_starts_an_agent_needs_no_more_than_its_session_may(with_agent: Home) -> None:
    status, lines = on_terminal(with_agent, "--start-another")
    assert status == 0, lines
    assert "pi --session 0123-abc" in lines


def test_what_the_agent_leaves_running_ends_with_it_and_is_named(with_agent: Home) -> None:
    status, lines = on_terminal(with_agent, "--leave-one", "--fail")
    (left,) = [int(line.split()[1]) for line in lines if line.startswith("left ")]
    assert (status, lines[-1]) == (3, "reef: ended what pi left running: sleep")
    assert not is_alive(left)


def test_the_agents_own_help_begins_with_three_lines_of_reefs_words(with_agent: Home) -> None:
    status, lines = on_terminal(with_agent, "--help")
    assert status == 0, lines
    assert "reef-pi help" in lines[0]
    assert lines[1].split() == [
        *("evolve", "harness", "wait", "update", "versions", "try", "good", "bad", "report", "setup", "page", "doctor"),
    ]
    assert lines[2] == ""
    assert "To resume this session:" in lines[3:]
