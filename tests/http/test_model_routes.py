"""The model API of a whole daemon: three dialects, scenarios in the path, and what agents ask beside calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reef.records.reader import Reader
from tests.http.running import Home, start_upstream, wait_for
from tests.unit.gateway.serving import DIALECTS, PATHS, asking


def record_of(home: Home, reply: httpx.Response) -> dict[str, Any]:
    """The record that a reply's receipt names."""
    reader = Reader(home.paths.database)
    try:
        return reader.record(reply.headers["x-reef-agent-record-id"])
    finally:
        reader.close()


@pytest.mark.parametrize("query", ["", "?beta=true"])
@pytest.mark.parametrize("dialect", [*DIALECTS, "count"])
def test_every_route_answers_with_a_receipt_that_resolves(home: Home, dialect: str, query: str) -> None:
    reply = home.nobody.post(PATHS[dialect] + query, json=asking(dialect, "hello"))
    assert reply.status_code == 200, reply.text
    row = record_of(home, reply)
    assert (row["state"], row["scenario"], row["route"]) == ("complete", "default", PATHS[dialect])
    assert reply.headers["request-id"] == row["agent_record_id"] and reply.headers["x-reef-release-id"]
    assert row["dialect"] == ("messages" if dialect == "count" else dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scenario_stands_in_the_path_for_clients_without_headers(home: Home, dialect: str) -> None:
    name = f"team.{dialect}-1"
    first = home.nobody.post(f"/s/{name}{PATHS[dialect]}", json=asking(dialect, "hello"))
    assert (first.status_code, first.headers["x-reef-scenario-created"]) == (200, "1")
    assert record_of(home, first)["scenario"] == name
    second = home.nobody.post(f"/s/%74eam.{dialect}-1{PATHS[dialect]}", json=asking(dialect, "hello"))
    assert "x-reef-scenario-created" not in second.headers
    assert record_of(home, second)["scenario"] == name
    both = home.nobody.post(f"/s/{name}{PATHS[dialect]}", json=asking(dialect, "x"), headers={"x-reef-scenario": "b"})
    assert both.status_code == 400 and "two scenarios" in both.json()["error"]["message"]


@pytest.mark.parametrize("name", ["a%2fb", "a%2Fb", "a%252fb", "%2e%2e", "a%00b", ".git", "x.lock", "%20"])
def test_what_is_no_scenario_name_in_a_path_makes_none(home: Home, name: str) -> None:
    before = {row["name"] for row in home.nobody.get("/reef/scenarios").json()["scenarios"]}
    url = f"/s/{name}/v1/messages"
    reply = home.nobody.send(home.nobody.build_request("POST", home.url + url, json=asking("messages", "hello")))
    assert reply.status_code in (400, 404)
    assert {row["name"] for row in home.nobody.get("/reef/scenarios").json()["scenarios"]} == before


def test_agents_that_look_before_they_call_are_answered_at_once(home: Home) -> None:
    client = home.nobody
    before = len(Reader(home.paths.database).records(limit=1000))
    assert client.head("/").status_code == client.head("/s/default/").status_code == 200
    for path in ("/v1/models", "/api/v1/models", "/s/default/v1/models", "/s/default/api/v1/models"):
        assert [row["id"] for row in client.get(path).json()["data"]] == ["fake-model"], path
    assert client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()["has_more"] is False
    assert client.get("/v1/models/fake-model").json()["id"] == "fake-model"
    assert client.get("/v1/models/some/other").status_code == 404
    assert client.get("/v2/models").status_code == 404
    assert len(Reader(home.paths.database).records(limit=1000)) == before


@pytest.mark.parametrize("path", ["/v1/models/..%2f..%2fadmin", "/v1/models/%2e%2e/admin", "/v1/models/a/./b"])
def test_a_models_name_does_not_climb_out_of_the_models(home: Home, path: str) -> None:
    client = home.nobody
    assert (
        client.send(client.build_request("GET", httpx.URL(home.url).copy_with(raw_path=path.encode()))).status_code
        == 404
    )


def test_routes_that_nobody_has_are_501_with_a_hint_and_leave_no_record(home: Home) -> None:
    before = len(Reader(home.paths.database).records(limit=1000))
    for path in ("/v1/embeddings", "/v1/images", "/v1/images/generations", "/v1/audio/speech", "/v1/decisions"):
        reply = home.nobody.post(path, json={"input": "a"})
        assert reply.status_code == 501, path
        assert "--inference.multimodal-url" in reply.json()["error"]["message"]
        assert "x-reef-agent-record-id" not in reply.headers
    assert home.nobody.post("/v1/images/other", json={}).status_code == 404
    assert len(Reader(home.paths.database).records(limit=1000)) == before


def test_the_multimodal_gateway_answers_what_the_upstream_does_not(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_MULTIMODAL_API_KEY": "mk-secret"})
    other = start_upstream(home.folder, "--dialects", "", "--more", "/embeddings,/images/generations,/images/edits")
    try:
        home.start(["inference.multimodal-url", other.url])
        for path in ("/v1/embeddings", "/v1/images/generations"):
            reply = home.nobody.post(path, json={"input": "a"})
            assert (reply.status_code, reply.content[:2]) == (200, b"\x00\xff")
            assert other.requests()[-1]["headers"]["authorization"] == "Bearer mk-secret"
        form = home.nobody.post("/v1/images/edits", files={"image": ("a.png", b"\x89PNG\xff", "image/png")})
        kind = other.requests()[-1]["headers"]["content-type"]
        assert (form.status_code, kind) == (200, form.request.headers["content-type"])
        assert form.content.startswith(b"\x00\xff--") and b"\r\n\r\n\x89PNG\xff\r\n--" in form.content
        assert "mk-secret" not in home.paths.daemon_log.read_text()
        settings = {row["key"]: row["value"] for row in home.person.get("/reef/config").json()["settings"]}
        assert settings["inference.multimodal-api-key"] == "set"
    finally:
        other.process.terminate()
        other.process.wait()


def test_the_status_shows_which_dialects_the_upstream_speaks(new_home: Callable[..., Home]) -> None:
    home = new_home()
    only = start_upstream(home.folder, "--dialects", "messages")
    home.upstream = only.url
    try:
        home.start()
        spoken = wait_for(lambda: home.nobody.get("/reef/status").json()["engine"]["dialects"] == ["messages"])
        assert spoken
        reply = home.nobody.post("/v1/messages", json=asking("messages", "hello"))
        assert reply.status_code == 200
    finally:
        only.process.terminate()
        only.process.wait()


def test_a_session_token_calls_in_every_dialect_as_its_agent(home: Home, session_token: str) -> None:
    for dialect in DIALECTS:
        for headers in ({"x-api-key": session_token}, {"authorization": f"Bearer {session_token}"}):
            with httpx.Client(base_url=home.url, headers=headers, trust_env=False, timeout=30) as client:
                reply = client.post(PATHS[dialect], json=asking(dialect, "hello", tools=["bash"]))
            row = record_of(home, reply)
            assert (row["source"], row["adapter"], row["side_call"]) == ("agent", "pi", False)
            assert row["session"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_crash_cut_off_is_kept_in_the_shape_of_its_dialect(new_home: Callable[..., Home], dialect: str) -> None:
    home = new_home().start()
    assert home.process is not None
    body = asking(dialect, "[[paced 100 50ms]]", stream=True)
    with home.nobody.stream("POST", PATHS[dialect], json=body) as reply:
        receipt = reply.headers["x-reef-agent-record-id"]
        wait_for(lambda: _flushed(home))
        home.process.kill()
    home.process.wait()
    home.start()
    reader = Reader(home.paths.database)
    row = wait_for(lambda: (found := reader.record(receipt))["state"] == "interrupted" and found)
    stored = json.loads(reader.response_bytes(receipt) or b"{}")
    reader.close()
    text = {
        "chat": lambda: stored["choices"][0]["message"]["content"],
        "responses": lambda: stored["output"][0]["content"][0]["text"],
        "messages": lambda: stored["content"][0]["text"],
    }[dialect]()
    assert row["dialect"] == dialect and text.startswith("word0 word1 ")


def _flushed(home: Home) -> int:
    with sqlite3.connect(f"file:{home.paths.database}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM progress").fetchone()[0])
