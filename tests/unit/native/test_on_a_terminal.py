"""The agent line by line on a real terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.unit.native.conftest import Native


class Terminal:
    """The agent on a terminal: what a person types, and what they see."""

    def __init__(self) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            env = os.environ | {"TERM": "xterm", "LANG": "C.UTF-8"}
            os.execve(sys.executable, [sys.executable, "-P", "-m", "reef.native"], env)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def until(self, words: str, seconds: float = 20) -> None:
        """Wait until these words are shown; what came before them is not looked at again."""
        deadline = time.monotonic() + seconds
        while words not in self.shown:
            assert time.monotonic() < deadline, f"{words!r} is not in {self.shown!r}"
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._end, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
                except OSError:
                    assert words in self.shown, self.shown
        self.shown = self.shown.partition(words)[2]

    def status(self) -> int:
        """Wait for the end."""
        while True:
            try:
                if not os.read(self._end, 65536):
                    break
            except OSError:
                break
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return status

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._end)


@pytest.fixture
def terminal(native: Native) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []

    def start() -> Terminal:
        opened.append(Terminal())
        opened[-1].until("/help")
        opened[-1].until("> ")
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_rules_are_read_again_at_every_turn(native: Native, terminal: Callable[[], Terminal]) -> None:
    native.put("rules.md", "the old rule\n")
    at = terminal()
    at.type("first\n")
    at.until("You said: first\n> ")
    native.put("rules.md", "the new rule\n")
    at.type("second\n")
    at.until("You said: second\n> ")
    at.type("/exit\n")
    assert at.status() == 0
    first, second = native.requests()
    assert "the old rule" in first["messages"][0]["content"]
    assert "the new rule" in second["messages"][0]["content"] and "the old" not in second["messages"][0]["content"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]
    contexts = [line["system"] for line in native.session() if line["type"] == "context"]
    assert len(contexts) == 2 and "the new rule" in contexts[1]


def test_ctrl_c_ends_the_turn_and_twice_the_program(native: Native, terminal: Callable[[], Terminal]) -> None:
    at = terminal()
    at.type("[[paced 500 20ms]]\n")
    at.until("word3 ")
    at.type("\x03")
    at.until("(Ctrl-C again leaves)")
    at.until("> ")
    at.type('[[tool bash {"command": "sleep 60"}]]\n')
    at.until("· bash sleep")
    at.type("\x03")
    at.until("(Ctrl-C again leaves)")
    at.type("\x03")
    assert at.status() == 130
    said = [line["message"] for line in native.session() if line["type"] == "message"]
    assert [message["role"] for message in said] == ["user", "assistant", "user", "assistant", "tool"]
    assert said[1]["content"].startswith("word0 word1 ") and "there is no result" in said[4]["content"]


def test_the_end_of_the_input_leaves_and_an_error_does_not(native: Native, terminal: Callable[[], Terminal]) -> None:
    at = terminal()
    at.type("[[status 500]] [[say no luck]]\n")
    at.until("reef: no luck")
    at.until("> ")
    at.type("/help\n")
    at.until("/reefine  ask reef for a change")
    at.until("> ")
    at.type("\x04")
    assert at.status() == 0
    assert json.loads(native.lines()[0]["body"])["messages"][-1]["role"] == "user"
