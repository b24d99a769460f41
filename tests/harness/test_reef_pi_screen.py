"""pi on a real screen: the notice, `/reefine` typed by hand, its result line, the install and the new rule."""

from __future__ import annotations

import pytest

from tests.e2e.home import Home, requests_of
from tests.e2e.tmux import Tmux

RULE = "never use tabs in python"


def turns(home: Home) -> list[str]:
    """The system messages of the requests that pi itself made."""
    return [body["messages"][0]["content"] for body in requests_of(home.upstream_log) if body.get("tools")]


@pytest.mark.timeout(240)
def test_an_ask_typed_in_a_session_comes_back_as_a_rule_of_the_same_session(coding: Home, tmux: Tmux) -> None:
    coding.ok("reef-pi evolve 'be brief' --wait")
    tmux.start("reef-pi")
    tmux.until("v2 of scenario coding is served, v1 is installed here; install it with /versions install")
    tmux.type(f"/reefine {RULE}")
    tmux.until("ask #2 published v3")
    assert turns(coding) == []
    tmux.type("/versions install")
    tmux.until("An agent's session asks reef to install v3 of scenario coding. v1 is installed.")
    tmux.until("Install v3 for pi? [y = yes, n = no]")
    tmux.key("y")
    tmux.until("v3 is installed")
    tmux.type("say hello")
    tmux.until("You said: say hello")
    assert RULE in turns(coding)[-1]
    tmux.type("/versions")
    tmux.until("v3 Add the rule never-use-tabs-in-python served, installed")
    tmux.type("/quit")
    tmux.until("with reef: reef-pi --session ")
