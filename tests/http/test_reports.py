"""Reports: stored as what their sender is, whole or not at all, and taken back by their owner."""

from __future__ import annotations

import httpx
import pytest

from reef.ids import new_id
from tests.http.running import Home, chat


def receipt(client: httpx.Client, **headers: str) -> str:
    return str(chat(client, "hello", **headers).headers["x-reef-agent-record-id"])


def report(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/reef/report", json=body)


def stored(home: Home, record: str) -> list[dict[str, object]]:
    return list(home.person.get(f"/reef/records/{record}").json()["reports"])


def test_a_report_is_the_persons_by_key_the_agents_by_session_and_a_programs_by_neither(
    home: Home, session_token: str
) -> None:
    record = receipt(home.nobody)
    for client, source in ((home.person, "person"), (home.http(session_token), "agent"), (home.nobody, "program")):
        reply = report(client, score=1, references=[record])
        assert reply.status_code == 200, reply.text
        assert set(reply.json()) == {"agent_record_id", "scenario", "request_type"}
        assert reply.json()["request_type"] == "report"
        assert stored(home, record)[0]["source"] == source


def test_the_persons_key_from_inside_a_session_reports_as_the_agent(home: Home) -> None:
    record = receipt(home.nobody)
    assert report(home.http(home.key, **{"x-reef-agent": "1"}), score=1, references=[record]).status_code == 200
    assert stored(home, record)[0]["source"] == "agent"


def test_an_unknown_receipt_is_400_that_names_it_and_nothing_is_stored(home: Home) -> None:
    known, unknown = receipt(home.nobody), new_id()
    reply = report(home.person, score=1, references=[known, unknown])
    assert reply.status_code == 400
    assert unknown in reply.json()["error"]["message"]
    assert stored(home, known) == []


def test_a_receipt_of_another_scenario_is_unknown(home: Home) -> None:
    other = receipt(home.nobody, **{"x-reef-scenario": "elsewhere"})
    assert report(home.person, score=1, references=[other]).status_code == 400


def test_the_same_id_with_the_same_content_is_one_report_and_with_other_content_409(home: Home) -> None:
    record, id = receipt(home.nobody), new_id()
    for _ in range(2):
        reply = report(home.person, agent_record_id=id, score=0.5, references=[record])
        assert (reply.status_code, reply.json()["agent_record_id"]) == (200, id)
    assert len(stored(home, record)) == 1
    reply = report(home.person, agent_record_id=id, score=0.6, references=[record])
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize("body", [{"score": True}, {"score": "1"}, {"references": "x"}, {"metadata": []}])
def test_a_field_of_the_wrong_type_is_400(home: Home, body: dict[str, object]) -> None:
    assert report(home.person, **body).status_code == 400


def test_a_person_takes_back_any_report_and_a_session_only_its_own(home: Home, session_token: str) -> None:
    record = receipt(home.nobody)
    own = report(home.http(session_token), score=0, references=[record]).json()["agent_record_id"]
    persons = report(home.person, score=1, references=[record]).json()["agent_record_id"]
    agent = home.http(session_token)
    assert agent.delete(f"/reef/reports/{persons}").status_code == 404
    assert agent.delete(f"/reef/reports/{own}").status_code == 200
    assert home.nobody.delete(f"/reef/reports/{persons}").status_code == 403
    assert home.person.delete(f"/reef/reports/{persons}").status_code == 200
    assert home.person.get(f"/reef/records/{record}").json()["score"] is None
    assert home.person.delete(f"/reef/reports/{new_id()}").status_code == 404
