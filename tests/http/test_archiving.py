"""A scenario that is archived takes no traffic, is listed apart, loses nothing and can be brought back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.http.running import Home, chat, wait_for

HEADER = {"x-reef-scenario": "old"}


def names(home: Home, **query: int) -> list[str]:
    return [row["name"] for row in home.nobody.get("/reef/scenarios", params=query).json()["scenarios"]]


@pytest.fixture
def old(home: Home) -> str:
    """A scenario with a record, in use; returns the receipt."""
    home.person.post("/reef/scenarios/old/restore", json={})
    return str(chat(home.nobody, "hello", **HEADER).headers["x-reef-agent-record-id"])


def test_an_archived_scenario_is_out_of_the_lists_and_keeps_everything(home: Home, old: str) -> None:
    for _ in range(2):
        reply = home.person.delete("/reef/scenarios/old")
        assert (reply.status_code, reply.json()) == (200, {"scenario": "old", "archived": True})
    assert "old" not in names(home) and names(home, archived=1) == ["old"]
    assert "old" not in [row["name"] for row in home.nobody.get("/reef/status").json()["scenarios"]]
    listed = home.person.get("/reef/records", params={"scenario": "old"}).json()["records"]
    assert old in [row["agent_record_id"] for row in listed]
    assert home.nobody.get("/reef/scenarios/old/releases").json()["releases"][0]["version"] == 1
    reply = home.person.post("/reef/scenarios/old/restore", json={})
    assert (reply.status_code, reply.json()) == (200, {"scenario": "old", "archived": False})
    assert "old" in names(home) and names(home, archived=1) == []
    assert chat(home.nobody, "again", **HEADER).status_code == 200
    again = home.person.get("/reef/records", params={"scenario": "old"}).json()["records"]
    assert len(again) == len(listed) + 1


def test_whatever_would_use_an_archived_scenario_is_refused_with_the_way_back(home: Home, old: str) -> None:
    token = home.person.post(
        "/reef/sessions",
        json={"scenario": "old", "adapter": "pi", "version": 1, "cwd": "/tmp", "pid": home.process.pid},  # type: ignore[union-attr]
    ).json()["token"]
    home.person.delete("/reef/scenarios/old")
    calls = [
        chat(home.nobody, "hello", **HEADER),
        chat(home.http(token), "hello"),
        home.nobody.post("/s/old/v1/messages", json={"model": "m", "max_tokens": 5, "messages": []}),
        home.person.post("/reef/report", json={"score": 1, "references": [old]}, headers=HEADER),
        home.person.post("/reef/train", json={"text": "be brief", "session": "", "release_id": ""}, headers=HEADER),
        home.person.post("/reef/scenarios", json={"name": "old"}),
        home.person.post("/reef/scenarios/old/rollback", json={"version": 1}),
        home.person.post("/reef/sessions", json={"scenario": "old", "adapter": "pi", "cwd": "/tmp", "pid": 2}),
    ]
    for reply in calls:
        assert reply.status_code == 409, reply.text
        assert "is archived" in reply.text and "reef scenarios restore old" in reply.text


def test_only_the_person_archives_and_default_stays(home: Home, old: str, session_token: str) -> None:
    for client in (home.nobody, home.http(session_token)):
        assert client.delete("/reef/scenarios/old").status_code == 403
        assert client.post("/reef/scenarios/old/restore", json={}).status_code == 403
    assert home.person.delete("/reef/scenarios/default").status_code == 400
    assert home.person.delete("/reef/scenarios/nowhere").status_code == 404
    assert home.nobody.get("/reef/scenarios", params={"archived": "yes"}).status_code == 400


def test_a_scenario_whose_step_runs_is_not_archived_and_its_asks_wait_until_it_is_back(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    home.person.post("/reef/scenarios", json={"name": "busy", "recipe": "reefine"})
    headers = {"x-reef-scenario": "busy"}
    body = {"text": "[[slow 60s]] be brief", "session": "", "release_id": ""}
    asked = [home.person.post("/reef/train", json=body, headers=headers).json()["agent_record_id"] for _ in range(2)]

    def states() -> list[str]:
        return [row["state"] for row in home.person.get("/reef/asks", params={"scenario": "busy"}).json()["asks"]][::-1]

    wait_for(lambda: states() == ["running", "queued"])
    refused = home.person.delete("/reef/scenarios/busy")
    assert (refused.status_code, refused.json()["error"]["hint"]) == (409, "reef steps cancel 1 --scenario busy")
    home.person.post(f"/reef/asks/{asked[1]}/cancel", json={})
    home.person.post(f"/reef/asks/{asked[0]}/cancel", json={})
    assert home.person.delete("/reef/scenarios/busy").status_code == 200
    home.stop()
    home.start()
    assert names(home) == ["default"] and names(home, archived=1) == ["busy"], "a start finishes no archived scenario"
    home.person.post("/reef/scenarios/busy/restore", json={})
    assert names(home) == ["default", "busy"]
