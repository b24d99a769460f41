"""Records over HTTP: windows, one record, and the exact bytes."""

from __future__ import annotations

import json

from reef.ids import new_id
from tests.http.running import Home, chat

SCENARIO = {"x-reef-scenario": "recorded"}


def test_the_stored_bytes_are_the_sent_and_the_received_ones(home: Home) -> None:
    body = b'{ "messages":[{"role":"user","content":"caf\xc3\xa9 [[say ok]]"}],\n "model":"fake-model", "x":1e2 }'
    headers = SCENARIO | {"content-type": "application/json"}
    reply = home.nobody.post("/v1/chat/completions", content=body, headers=headers)
    path = f"/reef/records/{reply.headers['x-reef-agent-record-id']}"
    assert home.person.get(f"{path}/request").content == body
    assert home.person.get(f"{path}/response").content == reply.content
    assert home.person.get(f"{path}/raw").status_code == 404
    row = home.person.get(path).json()
    assert (row["state"], row["request_text"]) == ("complete", body.decode())
    assert json.loads(row["response_text"]) == reply.json()


def test_windows_go_both_ways_and_count_everything(home: Home) -> None:
    scenario = {"x-reef-scenario": "windows"}
    for number in range(5):
        chat(home.nobody, f"turn {number}", **scenario)
    page = home.person.get("/reef/records?scenario=windows&limit=2").json()
    assert ([row["preview"] for row in page["records"]], page["total"]) == (["turn 4", "turn 3"], 5)
    before = page["records"][-1]["sequence"]
    older = home.person.get(f"/reef/records?scenario=windows&limit=2&before={before}").json()["records"]
    assert [row["preview"] for row in older] == ["turn 2", "turn 1"]
    newer = home.person.get(f"/reef/records?scenario=windows&limit=2&after={older[-1]['sequence']}").json()["records"]
    assert [row["preview"] for row in newer] == ["turn 3", "turn 2"]
    found = home.person.get("/reef/records?scenario=windows&q=turn 3").json()
    assert ([row["preview"] for row in found["records"]], found["total"]) == (["turn 3"], 1)


def test_a_query_that_is_put_wrongly_is_400_and_what_is_not_there_404(home: Home) -> None:
    for query in (
        "limit=0",
        "limit=x",
        "limit=1001",
        "before=-1",
        "after=1.5",
        "before=" + "9" * 40,
        "after=" + "0" * 20 + "9" * 5000,
    ):
        assert home.person.get(f"/reef/records?{query}").status_code == 400, query
    assert home.person.get("/reef/records?scenario=no-such").status_code == 404
    assert home.person.get("/reef/records/xyz").status_code == 400
    for part in ("", "/request", "/response", "/raw"):
        assert home.person.get(f"/reef/records/{new_id()}{part}").status_code == 404


def test_a_body_is_never_sent_as_a_type_that_a_browser_would_run(home: Home) -> None:
    receipt = chat(home.nobody, "<script>alert(1)</script>").headers["x-reef-agent-record-id"]
    reply = home.person.get(f"/reef/records/{receipt}/request")
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-store"
