"""`reef page` gives an address that a browser can open, and the terminal tells the same story."""

from __future__ import annotations

import httpx

from tests.cli.conftest import Live
from tests.cli.grown import ASK


def test_the_address_opens_without_any_header_and_the_terminal_says_why_and_where(live: Live) -> None:
    address = live.reef("page", "v2", "-s", "grown", "--print").out.strip()
    reply = httpx.get(address, trust_env=False)
    assert (reply.status_code, f"ask #1 (person): {ASK}" in reply.text) == (200, True)
    shown = live.reef("versions", "show", "v2", "-s", "grown").out
    assert f"  ask #1 (person): {ASK}\n" in shown
    assert "> v2  training  " in shown
    ask = live.reef("page", "#1", "-s", "grown", "--print").out.strip()
    assert httpx.get(ask, trust_env=False).status_code == 200
    assert "\nActivity\n" in live.reef("asks", "show", "1", "-s", "grown").out


def test_a_session_opens_no_page_and_an_unknown_one_is_named(live: Live) -> None:
    assert live.reef("page", "v2", env={"REEF_SESSION": "reef-" + "x" * 43}).status == 5
    assert live.reef("page", "v99", "-s", "grown", "--print").status == 1
