"""The records, reports and asks of a scenario in one order that can be read on from any place."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.running import Home, chat

HEADER = {"x-reef-scenario": "ordered"}


def page(home: Home, **query: Any) -> dict[str, Any]:
    reply = home.person.get("/reef/scenarios/ordered/records", params=query)
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store"), reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.fixture(scope="module")
def made(home: Home) -> list[tuple[str, str]]:
    """Kind and id of everything that came into the scenario, in its order."""
    home.person.post("/reef/scenarios", json={"name": "ordered", "recipe": "reefine"})

    def call() -> tuple[str, str]:
        return "inference", chat(home.nobody, "hello", **HEADER).headers["x-reef-agent-record-id"]

    def report(record: str, score: float) -> tuple[str, str]:
        body = {"score": score, "feedback": {"n": 10**30}, "references": [record]}
        return "report", home.person.post("/reef/report", json=body, headers=HEADER).json()["agent_record_id"]

    def ask() -> tuple[str, str]:
        body = {"text": "[[slow 60s]] be brief", "session": "", "release_id": ""}
        return "train", home.person.post("/reef/train", json=body, headers=HEADER).json()["agent_record_id"]

    first, second = call(), call()
    found = [first, second, report(first[1], 1), report(second[1], 0), call(), ask(), report(first[1], 0.5), call()]
    chat(home.nobody, "of another scenario", **{"x-reef-scenario": "elsewhere"})
    return found


def kinds_and_ids(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["request_type"], row["agent_record_id"]) for row in rows]


def own(rows: list[dict[str, Any]], made: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What a test made; the step of the ask makes calls of its own."""
    return [one for one in kinds_and_ids(rows) if one in made]


def test_everything_comes_in_the_order_in_which_it_came_and_once_however_it_is_paged(
    home: Home, made: list[tuple[str, str]]
) -> None:
    rows = page(home)["records"]
    assert own(rows, made) == made
    report = rows[2]
    assert set(report) >= {"sequence", "created_at", "references", "artifact_ref", "score"}
    assert (report["references"], report["score"]) == ([made[0][1]], 1)
    releases = home.nobody.get("/reef/scenarios/ordered/releases").json()["releases"]
    assert rows[0]["artifact_ref"] == releases[-1]["release_id"]
    for limit in (1, 3):
        after, seen = 0, []
        while found := page(home, after_sequence=after, limit=limit)["records"]:
            assert len(found) <= limit
            seen += found
            after = found[-1]["sequence"]
        assert own(seen, made) == made
        assert page(home, after_sequence=after) == {"records": [], "next_after_sequence": after}


def test_one_kind_alone_is_listed(home: Home, made: list[tuple[str, str]]) -> None:
    for kind in ("inference", "report", "train"):
        rows = page(home, request_type=kind)["records"]
        assert own(rows, made) == [one for one in made if one[0] == kind]


def test_one_entry_holds_what_was_said_byte_for_byte(home: Home, made: list[tuple[str, str]]) -> None:
    def entry(place: int) -> httpx.Response:
        return home.person.get(f"/reef/scenarios/ordered/records/{made[place][1]}")

    call, report, ask = entry(0), entry(2), entry(5)
    assert call.json()["payload"]["messages"] == [{"role": "user", "content": "hello"}]
    assert home.person.get(f"/reef/records/{made[0][1]}/response").content in call.content
    assert call.json()["payload"]["response"]["choices"]
    assert report.json()["payload"] == {
        "score": 1.0, "feedback": {"n": 10**30}, "references": [made[0][1]], "metadata": None
    }  # fmt: skip
    assert ask.json()["payload"]["text"] == "[[slow 60s]] be brief"
    assert home.person.get(f"/reef/scenarios/default/records/{made[0][1]}").status_code == 404
    assert home.person.get(f"/reef/scenarios/ordered/records/{'f' * 32}").status_code == 404


def test_a_page_that_is_asked_for_wrongly_is_400(home: Home, made: list[tuple[str, str]]) -> None:
    for query in ({"limit": 0}, {"limit": 101}, {"after_sequence": "x"}, {"request_type": "chat"}):
        assert home.person.get("/reef/scenarios/ordered/records", params=query).status_code == 400
    assert home.person.get("/reef/scenarios/nowhere/records").status_code == 404
