"""Session tokens: bound to one scenario, kept hashed, dead with their process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from reef.ids import new_id
from tests.http.running import Home, chat, wait_for


def open_session(home: Home, pid: int, **more: object) -> tuple[str, str]:
    body = {"scenario": "default", "adapter": "pi", "version": 1, "cwd": "/tmp/work", "pid": pid} | more
    reply = home.person.post("/reef/sessions", json=body)
    assert reply.status_code == 201, reply.text
    return reply.json()["session"], reply.json()["token"]


def test_a_call_with_a_session_token_is_recorded_as_the_agents_in_its_session(home: Home) -> None:
    chat(home.nobody, "hi", **{"x-reef-scenario": "of-the-agent"})
    session, token = open_session(home, os.getpid(), scenario="of-the-agent")
    reply = chat(home.http(token), "hello from inside", **{"x-reef-scenario": "default"})
    record = home.person.get(f"/reef/records/{reply.headers['x-reef-agent-record-id']}").json()
    assert (record["scenario"], record["source"], record["session"]) == ("of-the-agent", "agent", session)
    assert (record["adapter"], record["version"]) == ("pi", 1)
    rows = home.person.get("/reef/sessions?cwd=/tmp/work&scenario=of-the-agent").json()["sessions"]
    assert [(row["id"], row["calls"], row["last_preview"]) for row in rows] == [(session, 1, "hello from inside")]


def test_a_session_sees_itself_and_no_other(home: Home) -> None:
    open_session(home, os.getpid())
    session, token = open_session(home, os.getpid())
    open_session(home, os.getpid())
    receipt = chat(home.http(token), "mine").headers["x-reef-agent-record-id"]
    rows = home.http(token).get("/reef/sessions?limit=100&scenario=default").json()["sessions"]
    assert [(row["id"], row["last_receipt"]) for row in rows] == [(session, receipt)]


def test_a_token_is_stored_hashed_and_goes_nowhere_else(home: Home, upstream: object) -> None:
    _, token = open_session(home, os.getpid())
    chat(home.http(token), "hello")
    chat(home.http(**{"x-api-key": token}), "hello")
    assert token not in upstream.log.read_text()  # type: ignore[attr-defined]
    for file in home.paths.data.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file
    assert token not in home.paths.daemon_log.read_text()


def test_a_closed_session_opens_nothing_any_more(home: Home) -> None:
    session, token = open_session(home, os.getpid())
    assert home.person.delete(f"/reef/sessions/{session}").status_code == 200
    reply = chat(home.http(token), "hi")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized")
    assert home.person.delete(f"/reef/sessions/{session}").status_code == 404
    assert home.person.delete(f"/reef/sessions/{new_id()}").status_code == 404


def test_a_token_dies_with_its_process(home: Home) -> None:
    wrapper = subprocess.Popen(["sleep", "60"])
    _, token = open_session(home, wrapper.pid)
    assert chat(home.http(token), "hi").status_code == 200
    wrapper.kill()
    wrapper.wait()
    wait_for(lambda: chat(home.http(token), "hi").status_code == 401, 20)


def test_a_token_survives_a_restart_unless_its_process_ended_meanwhile(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    wrapper = subprocess.Popen(["sleep", "60"])
    _, lasting = open_session(home, os.getpid())
    _, ended = open_session(home, wrapper.pid)
    assert home.stop() == 0
    wrapper.kill()
    wrapper.wait()
    home.start()
    assert chat(home.http(lasting), "hi").status_code == 200
    assert chat(home.http(ended), "hi").status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"pid": "1"},
        {"pid": 0},
        {"pid": True},
        {"pid": 2**22 + 1},
        {"cwd": "relative"},
        {"version": "v1"},
        {"adapter": 5},
    ],
)
def test_a_session_that_is_put_wrongly_is_400(home: Home, wrong: dict[str, object]) -> None:
    body = {"scenario": "default", "adapter": "pi", "version": 1, "cwd": "/tmp", "pid": os.getpid()} | wrong
    assert home.person.post("/reef/sessions", json=body).status_code == 400


def test_a_session_of_an_unknown_scenario_is_404(home: Home) -> None:
    body = {"scenario": "no-such", "adapter": "pi", "version": 1, "cwd": "/tmp", "pid": os.getpid()}
    assert home.person.post("/reef/sessions", json=body).status_code == 404


def test_a_call_of_an_agent_says_how_many_bytes_of_rules_it_was_given_and_how_many_it_reads(home: Home) -> None:
    _, token = open_session(home, os.getpid())
    receipt = chat(home.http(token), "hello").headers["x-reef-agent-record-id"]
    rules = home.person.get(f"/reef/records/{receipt}").json()["notes"]["rules"]
    assert rules["cap"] == 65_536 and 0 <= rules["bytes"] < rules["cap"]
    receipt = chat(home.nobody, "hello").headers["x-reef-agent-record-id"]
    assert "rules" not in home.person.get(f"/reef/records/{receipt}").json()["notes"]
    _, token = open_session(home, os.getpid(), version=99)
    assert chat(home.http(token), "hello").status_code == 200
