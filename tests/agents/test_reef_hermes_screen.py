"""Hermes Agent on a real screen: the notice, `/reefine` typed by hand, its outcome, the install and the new rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents import person
from tests.e2e.home import Home, requests_of
from tests.e2e.tmux import Tmux

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(600)]

RULE = "never use tabs in python"


@pytest.fixture
def coding(tmp_path: Path, need_tool: Callable[[str], str], vendors: Path) -> Iterator[Home]:
    need_tool("tmux")
    with person.at_home(tmp_path, need_tool, vendors) as home:
        yield person.serve(home, "hermes")


def turns(home: Home) -> list[str]:
    """The system messages of the requests that Hermes itself made."""
    return [body["messages"][0]["content"] for body in requests_of(home.upstream_log) if body.get("tools")]


def test_an_ask_typed_in_a_session_comes_back_as_a_rule_of_the_same_session(coding: Home) -> None:
    coding.ok("reef-hermes evolve 'be brief' --wait", timeout=200)
    tmux = Tmux(coding)
    try:
        tmux.start("reef-hermes")
        tmux.until("v2 of scenario coding is served, v1 is installed here; /versions install", 120)
        tmux.until("Type your message or /help for commands", 120)
        tmux.type(f"/reefine {RULE}")
        tmux.until("ask #2 published v3", 120)
        assert turns(coding) == []
        tmux.type("/versions install")
        tmux.until("An agent's session asks reef to install v3 of scenario coding. v1 is installed.")
        tmux.until("Install v3 for Hermes Agent? [y = yes, n = no]")
        tmux.key("y")
        tmux.until("installed v3; its rules and commands count from the next turn on")
        tmux.type("say hello")
        tmux.until("You said: say hello", 120)
        assert RULE in turns(coding)[-1]
        tmux.type("/versions")
        tmux.until("v3 Add the rule never-use-tabs-in-python served, installed")
        tmux.type("/exit")
        tmux.until("with reef: reef-hermes --resume ")
    finally:
        tmux.end()
