"""The receipt of a stream is in a header before its first byte and on its last event, the same as in the store."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from tests.http.running import Home, wait_for
from tests.unit.gateway.serving import DIALECTS, PATHS, asking

LAST = {"chat": "[DONE]", "responses": "response.completed", "messages": "message_stop"}


def events(body: str) -> list[str]:
    return [line[6:] for line in body.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_complete_stream_has_it_in_the_header_and_on_the_dialects_last_event(home: Home, dialect: str) -> None:
    with home.nobody.stream("POST", PATHS[dialect], json=asking(dialect, "[[say one two]]", stream=True)) as reply:
        # Nothing of the body is read yet.
        receipt = reply.headers["x-reef-agent-record-id"]
        early = home.person.get(f"/reef/records/{receipt}")
        assert early.status_code == 200, "it resolves from the first moment"
        told = events(reply.read().decode())
    carrying = [place for place, data in enumerate(told) if '"reef"' in data]
    if dialect == "chat":
        assert (told[-1], carrying) == ("[DONE]", [len(told) - 2])
        assert json.loads(told[-2])["choices"] == []
    else:
        assert (json.loads(told[-1])["type"], carrying) == (LAST[dialect], [len(told) - 1])
    assert json.loads(told[carrying[0]])["reef"] == {"agent_record_id": receipt}
    row = wait_for(lambda: _ended(home, receipt))
    assert (row["agent_record_id"], row["state"], row["streaming"]) == (receipt, "complete", True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_its_client_cancels_has_it_in_the_header(home: Home, dialect: str) -> None:
    asked = asking(dialect, "[[paced 200 100ms]]", stream=True)
    with home.nobody.stream("POST", PATHS[dialect], json=asked) as reply:
        receipt = reply.headers["x-reef-agent-record-id"]
        assert '"reef"' not in next(reply.iter_text())
    row = wait_for(lambda: _ended(home, receipt))
    assert (row["agent_record_id"], row["state"]) == (receipt, "cancelled")
    rated = home.nobody.post("/reef/report", json={"score": 0, "references": [receipt]})
    assert rated.status_code == 200, "also what was cancelled can be rated"


def _ended(home: Home, receipt: str) -> dict[str, object] | None:
    row: dict[str, object] = home.person.get(f"/reef/records/{receipt}").json()
    return None if row["state"] == "open" else row


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_official_clients_that_validate_every_event_accept_the_last_one(home: Home, dialect: str) -> None:
    one = openai.OpenAI(base_url=f"{home.url}/v1", api_key="unused", _strict_response_validation=True)
    other = anthropic.Anthropic(base_url=home.url, api_key="unused", _strict_response_validation=True)
    asked = asking(dialect, "[[say one two]]", stream=True)
    found = {
        "chat": lambda: one.chat.completions.with_raw_response.create(**asked),
        "responses": lambda: one.responses.with_raw_response.create(**asked),
        "messages": lambda: other.messages.with_raw_response.create(**asked),
    }[dialect]()
    last = list(found.parse())[-1]
    assert last.reef == {"agent_record_id": found.headers["x-reef-agent-record-id"]}
