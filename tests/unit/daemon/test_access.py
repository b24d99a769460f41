"""Who is calling, and may they."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from reef.daemon.access import Access, Bound, Caller, Door, credential, digest
from reef.errors import Forbidden, Unauthorized
from reef.ids import new_token

PERSON = "a" * 64


@dataclass(frozen=True)
class Run:
    id: str = "0" * 32
    scenario: str = "one"
    kind: Literal["agent", "step"] = "agent"
    key: str = "k"
    adapter: str | None = "pi"
    version: int | None = 1


def door(*tokens: str, **sessions: Bound) -> Door:
    held = {digest(token): session for token, session in sessions.items()}
    return Door(PERSON, tokens, held.get)


def test_a_bearer_scheme_is_read_in_any_case_and_the_credential_as_it_is() -> None:
    assert credential({"authorization": "bEaReR Key"}) == "Key"
    assert credential({"authorization": "Basic Key"}) is None
    assert credential({"x-api-key": "Key"}) == "Key"
    assert credential({"authorization": "Bearer A", "x-api-key": "B"}) == "A"
    assert credential({}) is None


def test_without_a_configured_token_any_habitual_key_is_nobody() -> None:
    for headers in ({}, {"authorization": "Bearer none"}, {"x-api-key": "sk-whatever"}):
        assert door().caller(headers) == Caller("nobody")


def test_the_person_key_is_the_person_in_both_header_forms() -> None:
    assert door().caller({"authorization": f"Bearer {PERSON}"}).source == "person"
    assert door().caller({"x-api-key": PERSON}).source == "person"


def test_a_configured_token_is_needed_and_a_wrong_one_is_refused_without_being_repeated() -> None:
    entry = door("right")
    assert entry.caller({"authorization": "Bearer right"}) == Caller("token")
    for headers in ({}, {"authorization": "Bearer wr0ng"}, {"x-api-key": "Right"}):
        with pytest.raises(Unauthorized) as refused:
            entry.caller(headers)
        assert "wr0ng" not in refused.value.message
    assert entry.caller({"authorization": f"Bearer {PERSON}"}).kind == "person"


def test_an_ended_session_is_told_so_even_in_open_mode() -> None:
    with pytest.raises(Unauthorized, match="session has ended"):
        door().caller({"authorization": f"Bearer {new_token()}"})


def test_a_session_token_opens_its_session_and_reports_as_what_it_is() -> None:
    agent, step = new_token(), new_token()
    entry = door(**{agent: Run(), step: Run(kind="step")})
    assert entry.caller({"x-api-key": agent}).source == "agent"
    assert entry.caller({"authorization": f"Bearer {step}"}).source == "step"


def test_saying_to_be_inside_a_session_takes_rights_away_and_gives_none() -> None:
    inside = {"x-reef-agent": "1"}
    assert door().caller(inside).source == "agent"
    person_inside = door().caller(inside | {"authorization": f"Bearer {PERSON}"})
    assert person_inside.source == "agent"
    for access in (Access.KEYED, Access.DECIDING):
        with pytest.raises(Forbidden):
            door().check(person_inside, access, session_may=False)


@pytest.mark.parametrize(
    ("caller", "access", "session_may", "allowed"),
    [
        (Caller("nobody"), Access.OPEN, False, True),
        (Caller("nobody"), Access.KEYED, False, False),
        (Caller("nobody"), Access.DECIDING, False, False),
        (Caller("token"), Access.KEYED, False, True),
        (Caller("token"), Access.DECIDING, False, False),
        (Caller("person"), Access.DECIDING, False, True),
        (Caller("session", Run()), Access.OPEN, True, True),
        (Caller("session", Run()), Access.OPEN, False, False),
        (Caller("session", Run()), Access.KEYED, True, True),
        (Caller("session", Run()), Access.KEYED, False, False),
        (Caller("session", Run()), Access.DECIDING, True, False),
    ],
)
def test_each_caller_may_do_what_its_kind_may(caller: Caller, access: Access, session_may: bool, allowed: bool) -> None:
    if allowed:
        door().check(caller, access, session_may)
    else:
        with pytest.raises(Forbidden) as refused:
            door().check(caller, access, session_may)
        assert refused.value.hint
