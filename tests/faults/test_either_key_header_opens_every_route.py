"""A token is accepted in both headers that clients put one in; a wrong one is refused in the client's own shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.http.running import Home
from tests.unit.gateway.serving import DIALECTS, PATHS, asking

TOKEN = "a-token-of-this-house"


@pytest.fixture
def locked(new_home: Callable[..., Home]) -> Home:
    return new_home(environ={"REEF_TOKEN": TOKEN}).start()


def post(home: Home, dialect: str, headers: dict[str, str]) -> httpx.Response:
    with httpx.Client(base_url=home.url, headers=headers, trust_env=False, timeout=30) as client:
        return client.post(PATHS[dialect], json=asking(dialect, "hello"))


def test_both_forms_open_every_route_and_a_wrong_token_is_refused_in_the_dialects_shape(locked: Home) -> None:
    for dialect in (*DIALECTS, "count"):
        for headers in (
            {"x-api-key": TOKEN},
            {"authorization": f"Bearer {TOKEN}"},
            {"Authorization": f"bearer {TOKEN}"},
        ):
            assert post(locked, dialect, headers).status_code == 200, (dialect, headers)
        for headers in ({"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}, {}):
            reply = post(locked, dialect, headers)
            assert reply.status_code == 401
            body: dict[str, Any] = reply.json()
            assert "detail" not in body and TOKEN not in reply.text
            assert body["error"]["type"] == "authentication_error" and body["error"]["message"]
            assert (body.get("type") == "error") is (dialect in ("messages", "count"))


def test_reefs_own_refusals_have_the_shape_of_the_route(locked: Home) -> None:
    client = locked.http(TOKEN)
    anthropic = client.post("/v1/messages", content="{}", headers={"content-type": "text/plain"})
    assert (anthropic.status_code, anthropic.json()["type"]) == (415, "error")
    anthropic = client.post("/s/team/v1/messages", content="[", headers={"content-type": "application/json"})
    assert (anthropic.status_code, anthropic.json()["error"]["type"]) == (400, "invalid_request_error")
    openai = client.post("/v1/responses", content="[", headers={"content-type": "application/json"})
    assert (openai.status_code, set(openai.json())) == (400, {"error"})
