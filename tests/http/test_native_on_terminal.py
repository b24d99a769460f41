"""A whole session of reef's own agent on a terminal: an ask, what becomes of it, the install, the next turn."""

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

from reef.client import Client
from tests.http.running import Home

RULE = "never use tabs in python"


class Session:
    """`reef-native` on a terminal."""

    def __init__(self, home: Home) -> None:
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(home.folder)
            words = [sys.executable, "-P", "-m", "reef.harness.wrapper", "native"]
            os.execve(sys.executable, words, home.env | {"TERM": "xterm", "LANG": "C.UTF-8"})
        self._seen = ""

    def until(self, text: str) -> None:
        """Read until `text` is shown after what was waited for before."""
        deadline = time.monotonic() + 40
        while text not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} is not in {self._seen!r}"
            if select.select([self._file], [], [], 0.2)[0]:
                self._seen += os.read(self._file, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
        self._seen = self._seen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._file)


@pytest.fixture
def session(new_home: Callable[..., Home]) -> Iterator[tuple[Home, Session]]:
    flags = [["recipe.implementation", "reefine"], ["harness.adapter", "native"]]
    home = new_home(flags=flags).start()
    with Client.connect(home.paths, start=False) as client:
        list(client.install_harness("default", "native", 1))
    opened = Session(home)
    yield home, opened
    opened.close()


def test_an_ask_typed_in_a_session_is_settled_installed_and_carried_by_the_next_turn(
    session: tuple[Home, Session],
) -> None:
    home, at = session
    at.until("/help\n")
    at.until("> ")
    at.type(f"/reefine {RULE}\n")
    at.until("reef: ask #1 filed for scenario default\n")
    at.until("reef: ask #1 published v2: ")
    at.until("install it with /versions v2 install")
    at.type("/versions v2 install\n")
    at.until(RULE)
    at.until("[y = yes, n = no] ")
    at.type("y")
    at.until("reef: v2 is installed")
    at.until("> ")
    at.type("say hi\n")
    at.until("You said: say hi\n")
    at.until("> ")
    at.type("/exit\n")
    records = home.person.get("/reef/records", params={"adapter": "native"}).json()["records"]
    sent = home.person.get(f"/reef/records/{records[0]['agent_record_id']}/request").json()
    assert RULE in json.dumps(sent["messages"][0])
