"""Whatever a client or a server sends: a client's mistake is a 400, and a server's never raises anything else.

A good request, reply or stream is taken, and a few values in it, wherever they stand, become something else.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import InvalidInput, UpstreamFailed
from reef.gateway.translate import Compat, error_reply, translate, without_minted_reasoning, without_minted_thinking
from tests.unit.gateway.translate.samples import REPLIES, REQUESTS, STREAMS
from tests.unit.gateway.translate.talk import CREATED, RECEIPT, asked, exchange

DIALECTS = (CHAT, MESSAGES, RESPONSES)
PAIRS = [(client, upstream) for client in DIALECTS for upstream in DIALECTS if client != upstream]
GONE = object()
VALUES = st.one_of(
    st.just(GONE),
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from(["", "user", "text", "tool", "{}", "reef:field:role", "data:;base64,", "\ud800", "\r\n"]),
    st.just([]),
    st.just([1]),
    st.just([{}]),
    st.just({}),
    st.just({"type": "text"}),
    st.just({"type": ["x"], "text": None}),
)
CHANGES = st.lists(st.tuples(st.integers(0, 2**32), VALUES), min_size=1, max_size=3)
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, one in inside:
        found += [(value, key), *places(one)]
    return found


def changed(value: Any, changes: list[tuple[int, Any]]) -> Any:
    """A copy of `value` in which some places hold something else."""
    value = copy.deepcopy(value)
    for number, new in changes:
        known = places(value)
        if known:
            holder, key = known[number % len(known)]
            if new is GONE:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(new)
    return value


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@QUIET
@given(changes=CHANGES, effort=st.booleans())
def test_a_strange_request_is_translated_or_refused_with_400(
    client: str, upstream: str, changes: list[Any], effort: bool
) -> None:
    body = changed(REQUESTS[client], changes)
    try:
        found = translate(client, upstream, body, receipt=RECEIPT, created=CREATED, compat=Compat(effort=effort))
    except InvalidInput as error:
        assert "`" in error.message
        return
    assert found.note().isascii() and "\n" not in found.note()
    json.dumps(found.body)


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@QUIET
@given(changes=CHANGES)
def test_a_strange_reply_is_told_or_failed(client: str, upstream: str, changes: list[Any]) -> None:
    found = exchange(client, upstream, asked(client, stream=True, max_tokens=3))
    reply = changed(REPLIES[upstream], changes)
    try:
        assert isinstance(found.reply(reply), dict)
    except UpstreamFailed as error:
        assert error.http_status == 502
    stream = found.stream()
    for event in changed(STREAMS[upstream], changes):
        if isinstance(event, dict):
            assert isinstance(stream.take(event), list)
    stream.done()
    assert not (stream.ended and stream.failure)


@QUIET
@given(changes=CHANGES, client=st.sampled_from(DIALECTS), status=st.integers(400, 599), raw=st.binary(max_size=30))
def test_any_error_reply_has_the_shape_of_the_client(changes: list[Any], client: str, status: int, raw: bytes) -> None:
    body = {"type": "error", "error": {"type": "x", "message": "no", "code": 3, "param": "a"}, "message": "m"}
    for one in (raw, json.dumps(changed(body, changes)).encode()):
        found = error_reply(client, status, one)
        assert isinstance(found["error"]["message"], str) and found["error"]["type"]
        assert (found.get("type") == "error") is (client == MESSAGES)


@QUIET
@given(changes=CHANGES)
def test_taking_out_what_reef_signed_never_stumbles(changes: list[Any]) -> None:
    request = changed(REQUESTS[MESSAGES], changes)
    found = without_minted_thinking(request)
    assert {**found, "messages": None} == {**request, "messages": None}
    request = changed(REQUESTS[RESPONSES], changes)
    assert without_minted_reasoning(request) == request
