"""OpenCode on a real screen: the notice, `/reefine` typed by hand, its result line, the install and the new rule."""

from __future__ import annotations

import pytest

from tests.agents.test_reef_opencode import RULE, calls, coding, home
from tests.e2e.home import Home
from tests.e2e.tmux import Tmux

__all__ = ["coding", "home"]
pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]


def test_an_ask_typed_in_a_session_comes_back_as_a_rule_of_the_same_session(coding: Home, tmux: Tmux) -> None:
    coding.ok("reef-opencode evolve 'be brief' --wait", timeout=300)
    tmux.start("reef-opencode")
    tmux.until("Ask anything", 120)
    tmux.type(f"/reefine {RULE}")
    tmux.until("v2 of scenario coding is served, v1 is installed here", 120)
    tmux.until("ask #2 filed for scenario coding")
    tmux.until("ask #2 published v3", 200)
    assert calls(coding) == []
    tmux.type("/versions install")
    tmux.until("An agent's session asks reef to install v3 of scenario coding. v1 is installed.")
    tmux.until("Install v3 for OpenCode? [y = yes, n = no]")
    tmux.key("y")
    tmux.until("v3 is installed")
    tmux.type("say hello")
    tmux.until("You said: say hello", 120)
    asked = calls(coding)[-1]["messages"]
    assert RULE in asked[0]["content"]
    # Nothing of what reef said in the chat is sent to the model.
    assert [message["content"] for message in asked[1:]] == ["say hello"]
    coding.ok("reef-opencode evolve 'use spaces' --wait", timeout=300)
    tmux.type("say more")
    # Between turns the notice stands in the chat.
    tmux.until("v4 of scenario coding is served, v3 is installed here; install it with /versions install", 120)
    assert len(calls(coding)) == 2
    tmux.key("C-c")
    tmux.until("with reef: reef-opencode -s ses_")
