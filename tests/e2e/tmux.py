"""A person's screen in the room: what is typed, and what is seen."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.home import Home, until

_FRAME = re.compile("[│┃║▏▕█▀▄╹╻╭╮╰╯─━]+")


class Tmux:
    """One tmux session in the room."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.socket = home.folder / "tmux"

    def start(self, command: str) -> None:
        env = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        kept = shlex.quote(f"{command}; sleep 60")
        self.home.ok(f"tmux -f /dev/null -S {self.socket} new-session -d -x 120 -y 40 {kept}", **env)

    def screen(self) -> str:
        return self.home.ok(f"tmux -S {self.socket} capture-pane -p")

    def type(self, text: str) -> None:
        self.home.ok(f"tmux -S {self.socket} send-keys -l {shlex.quote(text)}")
        self.home.ok(f"tmux -S {self.socket} send-keys Enter")

    def key(self, key: str) -> None:
        self.home.ok(f"tmux -S {self.socket} send-keys {key}")

    def until(self, text: str, seconds: float = 60) -> str:
        """Wait for `text`, which may be broken over lines and framed."""

        def look() -> str | None:
            now = self.screen()
            return now if text in " ".join(_FRAME.sub(" ", now).split()) else None

        return until(look, text, self.screen, seconds)

    def end(self) -> None:
        self.home.sh(f"tmux -S {self.socket} kill-server")


@pytest.fixture
def tmux(coding: Home, need_tool: Callable[[str], str]) -> Iterator[Tmux]:
    """The screen of a home that serves scenario `coding`."""
    need_tool("tmux")
    made = Tmux(coding)
    yield made
    made.end()
