"""Clients that were written for the public protocol work unchanged."""

from __future__ import annotations

from collections.abc import Callable

import httpx
from reef_client import ReefClient, ReefClientError

from tests.http.running import Home


def test_the_published_client_calls_and_reports(home: Home) -> None:
    client = ReefClient(home.url)
    body = {"model": "fake-model", "messages": [{"role": "user", "content": "hello"}]}
    reply, receipt = client.inference_with_record("public", "/v1/chat/completions", body)
    assert reply["choices"][0]["message"]["content"]
    report = client.report("public", {"score": 1.0, "feedback": "good"}, references=[receipt])
    assert (report["scenario"], report["request_type"]) == ("public", "report")
    stored = home.person.get(f"/reef/records/{receipt}").json()["reports"]
    assert [(row["source"], row["score"], row["feedback"]) for row in stored] == [("program", 1.0, "good")]
    assert client.get("/reef/scenarios/public/releases")["releases"][0]["version"] == 1
    try:
        client.report("public", {"score": 1.0}, references=["nope"])
    except ReefClientError as error:
        assert "nope" in str(error)
    else:
        raise AssertionError("an unknown receipt was taken")


def test_the_snippet_of_the_public_readme_runs_with_a_token(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_TOKEN": "readme-token"}).start()
    headers = {"Authorization": "Bearer readme-token", "x-reef-scenario": "support-bot"}
    with httpx.Client(base_url=home.url, headers=headers) as client:
        reply = client.post(
            "/v1/chat/completions", json={"model": "fake-model", "messages": [{"role": "user", "content": "hi"}]}
        )
        receipt = reply.headers["x-reef-agent-record-id"]
        report = client.post("/reef/report", json={"score": 1.0, "references": [receipt]})
    assert report.json() == {
        "agent_record_id": report.json()["agent_record_id"],
        "scenario": "support-bot",
        "request_type": "report",
    }
