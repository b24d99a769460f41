"""Codex on a real screen: `reefine: …` typed, its result, an install from inside, and the rule at the next turn."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_reef_codex import RULE, calls, coding, home, own_files, told
from tests.e2e.home import Home, until
from tests.e2e.tmux import Tmux

__all__ = ["coding", "home"]
pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]


def say(tmux: Tmux, text: str) -> None:
    """Type and send: an Enter that comes with the text is a line break of a paste to Codex."""
    tmux.home.ok(f"tmux -S {tmux.socket} send-keys -l {shlex.quote(text)}")
    tmux.until(text)
    tmux.key("Enter")


def settled(home: Home) -> Any:
    ask = json.loads(home.ok("reef asks show 1 -s coding --json"))
    return ask if ask["version"] else None


def test_an_ask_typed_in_a_session_comes_back_as_a_rule_of_the_same_session(coding: Home, tmux: Tmux) -> None:
    before = own_files(coding)
    tmux.start("reef-codex")
    tmux.until("Ask Codex to do anything")
    say(tmux, f"reefine: {RULE}")
    tmux.until("reef: ask #1 filed for scenario coding")
    until(lambda: settled(coding), "the ask", seconds=120)
    assert calls(coding) == []
    say(tmux, "say hello")
    tmux.until("reef: ask #1 published v2")
    tmux.until("versions: v2 install")
    assert RULE not in told(calls(coding)[-1])
    say(tmux, "versions: install")
    tmux.until("An agent's session asks reef to install v2 of scenario coding. v1 is installed.")
    tmux.until("Install v2 for Codex? [y = yes, n = no]")
    tmux.key("y")
    tmux.until("v2 is installed")
    say(tmux, "say hello again")
    until(lambda: RULE in told(calls(coding)[-1]) or None, "the rule in the next turn", tmux.screen)
    say(tmux, "/quit")
    tmux.until("with reef: reef-codex resume ")
    assert own_files(coding) == before
    # Nothing of Codex is left: it would keep a copy of itself and two programs running.
    assert coding.sh("pgrep -f app-server.--managed-daemon").stdout == ""
    assert not Path(coding.data, "harness/coding/codex/home/packages").exists()
