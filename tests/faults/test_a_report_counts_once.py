"""The same report again is one report, other content under its id is refused, a revision counts once in every total."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reef.ids import new_id
from tests.http.running import Home, chat


def test_a_retry_adds_nothing_and_a_change_of_mind_counts_once_everywhere(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    token = home.person.post(
        "/reef/sessions",
        json={
            "scenario": "default",
            "adapter": "pi",
            "version": 1,
            "cwd": "/tmp",
            "pid": home.process and home.process.pid,
        },
    ).json()["token"]
    receipt = chat(home.http(token), "hello").headers["x-reef-agent-record-id"]
    report: dict[str, Any] = {"agent_record_id": new_id(), "score": 1, "feedback": "good", "references": [receipt]}

    def totals() -> tuple[object, ...]:
        record = home.person.get(f"/reef/records/{receipt}").json()
        session = home.person.get("/reef/sessions").json()["sessions"][0]
        scenario = home.nobody.get("/reef/status").json()["scenarios"][0]
        listed = home.person.get("/reef/reports").json()["reports"]
        entries = home.person.get("/reef/scenarios/default/records?request_type=report").json()["records"]
        scores = [row["score"] for row in (record, session, *record["reports"], *listed, *entries)]
        return scores, scenario["reports"], scenario["agent_reports"]

    answers = [home.person.post("/reef/report", json=report) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200] and answers[0].json() == answers[1].json()
    assert totals() == ([1.0] * 5, 1, 0)
    refused = home.person.post("/reef/report", json=report | {"score": 0})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert totals() == ([1.0] * 5, 1, 0)
    revised = home.person.patch(f"/reef/reports/{report['agent_record_id']}", json={"score": 0})
    assert (revised.status_code, revised.json()["revision"]) == (200, 1)
    assert totals() == ([0.0] * 5, 1, 0)
    shown = home.person.get(f"/reef/reports/{report['agent_record_id']}").json()
    assert [value["score"] for value in shown["revisions"]] == [1, 0], "the earlier value stays readable"
    assert home.person.post("/reef/report", json=report).json() == answers[0].json()
    assert totals() == ([0.0] * 5, 1, 0), "a late retry brings the old value back nowhere"
