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


def test_a_change_of_mind_is_a_revision_that_counts_once_and_can_be_undone(home: Home) -> None:
    record = receipt(home.nobody)
    id = report(home.person, score=1, references=[record]).json()["agent_record_id"]
    reply = home.person.patch(f"/reef/reports/{id}", json={"score": 0, "feedback": "it never ran the tests"})
    assert reply.json() == {"agent_record_id": id, "scenario": "default", "request_type": "report", "revision": 1}
    shown = home.person.get(f"/reef/reports/{id}").json()
    assert [(row["score"], row["feedback"]) for row in shown["revisions"]] == [(1, None), (0, "it never ran the tests")]
    assert stored(home, record) == [shown]
    assert home.person.get(f"/reef/records/{record}").json()["score"] == 0
    for wrong in ({"score": "0"}, {}, {"references": [record]}):
        assert home.person.patch(f"/reef/reports/{id}", json=wrong).status_code == 400
    assert home.person.delete(f"/reef/reports/{id}/revisions/7").status_code == 404
    undone = home.person.delete(f"/reef/reports/{id}/revisions/1")
    assert undone.json() == {"agent_record_id": id, "undone": 1, "references": [record]}
    assert home.person.get(f"/reef/records/{record}").json()["score"] == 1
    assert home.person.delete(f"/reef/reports/{id}").status_code == 200
    assert home.person.patch(f"/reef/reports/{id}", json={"score": 0}).status_code == 409


def test_an_agent_sees_and_revises_its_own_reports_and_no_other(home: Home, session_token: str) -> None:
    record, agent = receipt(home.nobody), home.http(session_token)
    persons = report(home.person, score=1, references=[record]).json()["agent_record_id"]
    own = report(agent, score=1, references=[record]).json()["agent_record_id"]
    for call in (agent.get, agent.delete):
        assert call(f"/reef/reports/{persons}").status_code == 404
    assert agent.patch(f"/reef/reports/{persons}", json={"score": 0}).status_code == 404
    assert [row["id"] for row in agent.get("/reef/reports", params={"receipt": record}).json()["reports"]] == [own]
    assert agent.patch(f"/reef/reports/{own}", json={"score": 0.5}).json()["revision"] == 1
    row = home.person.get(f"/reef/records/{record}").json()
    assert (row["score"], row["agent_score"]) == (1, 0.5)


def test_reports_are_listed_newest_first_by_scenario_receipt_and_source(home: Home, session_token: str) -> None:
    record = receipt(home.nobody, **{"x-reef-scenario": "listed"})
    headers = {"x-reef-scenario": "listed"}
    made = [
        client.post("/reef/report", json={"score": 1, "references": [record]}, headers=headers).json()
        for client in (home.person, home.nobody, home.person)
    ]
    ids = [row["agent_record_id"] for row in made][::-1]

    def listed(**query: object) -> list[str]:
        reply = home.person.get("/reef/reports", params={"scenario": "listed", **query})  # type: ignore[dict-item]
        return [row["id"] for row in reply.json()["reports"]]

    assert listed() == listed(receipt=record) == ids
    assert listed(source="program") == [ids[1]]
    assert listed(limit=1) == ids[:1]
    assert listed(before=home.person.get(f"/reef/reports/{ids[0]}").json()["sequence"]) == ids[1:]
    for wrong in ({"source": "me"}, {"limit": 0}, {"receipt": "9f3c"}):
        assert home.person.get("/reef/reports", params=wrong).status_code == 400
    assert home.nobody.get("/reef/reports").status_code == 403


def test_whatever_json_can_hold_is_stored_and_shown_as_it_was_sent(home: Home) -> None:
    record = receipt(home.nobody)
    sent = b'{"references": ["%s"], "feedback": {"n": 1%s, "half": "\\ud800"}}' % (record.encode(), b"0" * 40)
    headers = {"content-type": "application/json"}
    assert home.person.post("/reef/report", content=sent, headers=headers).status_code == 200
    assert stored(home, record)[0]["feedback"] == {"n": 10**40, "half": "\ud800"}
    for wrong in (b'{"score": NaN}', b'{"score": 1e999}', b'{"feedback": ' + b'{"a":' * 100_000, b"[]", b"{"):
        assert home.person.post("/reef/report", content=wrong, headers=headers).status_code == 400


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
