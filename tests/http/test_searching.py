"""Searching over HTTP: what was said is found soon, and the route narrows as the list does."""

from __future__ import annotations

from tests.http.running import Home, chat, wait_for


def test_what_was_said_is_found_within_seconds_and_the_status_says_what_is_not_yet(home: Home) -> None:
    scenario = {"x-reef-scenario": "searched"}
    receipt = chat(home.nobody, "where is the [[say in the drawer]] corkscrew?", **scenario).headers[
        "x-reef-agent-record-id"
    ]
    assert wait_for(lambda: home.nobody.get("/reef/status").json()["search"]["pending"] == 0)
    state = home.nobody.get("/reef/status").json()["search"]
    assert state["cut"] == 0 and state["cpu_s"] > 0

    def found(query: str) -> list[str]:
        answer = home.person.get(f"/reef/records/search?scenario=searched&{query}")
        assert answer.status_code == 200, answer.text
        return [row["agent_record_id"] for row in answer.json()["records"]]

    assert found("q=corkscrew") == found("q=request:cork*") == found("q=reply:drawer") == [receipt]
    assert found("q=reply:corkscrew") == found("q=corkscrew&failed=1") == found("q=corkscrew&since=2999-01-01") == []
    assert found("q=%22the+drawer%22") == [receipt]
    assert found('q=%22(((%22 AND * NEAR("') == []
    assert home.person.get("/reef/records/search?q=corkscrew&score=good").status_code == 400
    assert home.person.get("/reef/records/search?q=corkscrew&failed=yes").status_code == 400
    row = home.person.get("/reef/records/search?q=drawer").json()["records"][0]
    assert (row["found_in"], "in the drawer" in row["snippet"]) == ("reply", True)
