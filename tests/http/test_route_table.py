"""Every route is keyed unless it is listed as open; the app and the table say the same."""

from __future__ import annotations

import re

import pytest

from reef.daemon.access import Access
from reef.daemon.app import ROUTES
from reef.daemon.table import Route
from tests.http.running import Home

MODEL_API = {
    "HEAD /",
    "POST /v1/chat/completions",
    "POST /v1/responses",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "GET /v1/models",
    "GET /v1/models/{name:.+}",
    "GET /api/v1/models",
    "POST /v1/embeddings",
    "POST /v1/images",
    "POST /v1/images/generations",
    "POST /v1/images/edits",
    "POST /v1/images/variations",
    "POST /v1/audio/speech",
    "POST /v1/decisions",
}
OPEN = {
    "GET /healthz",
    *MODEL_API,
    "GET /reef/status",
    "GET /reef/scenarios",
    "POST /reef/scenarios",
    "GET /reef/scenarios/{scenario}/releases",
    "GET /reef/harness/releases",
    "POST /reef/report",
    "POST /reef/train",
    "GET /reef/harness/requests/{id}/progress",
    "GET /reef/harness/requests/{id}/page",
    "GET /reef/harness",
    "GET /reef/harness/install",
    "GET /reef/harness/adapters",
}
DECIDING = {
    "DELETE /reef/scenarios/{scenario}",
    "POST /reef/scenarios/{scenario}/restore",
    "POST /reef/scenarios/{scenario}/import",
    "POST /reef/scenarios/{scenario}/pin",
    "POST /reef/scenarios/{scenario}/promote",
    "POST /reef/scenarios/{scenario}/unpin",
    "POST /reef/scenarios/{scenario}/rollback",
    "POST /reef/harness/install",
    "POST /reef/harness/remove",
    "POST /reef/forget",
    "POST /reef/forget/finish",
    "POST /reef/records/prune",
}
SESSION = {
    "GET /healthz",
    *MODEL_API,
    "GET /reef/harness/releases",
    "POST /reef/report",
    "GET /reef/reports",
    "GET /reef/reports/{id}",
    "PATCH /reef/reports/{id}",
    "DELETE /reef/reports/{id}",
    "DELETE /reef/reports/{id}/revisions/{number}",
    "POST /reef/train",
    "GET /reef/harness/requests/{id}/progress",
    "GET /reef/harness",
    "GET /reef/sessions",
    "POST /reef/harness/proposals",
}
KEYED = [route for route in ROUTES if route.access is not Access.OPEN]


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


def call(home: Home, route: Route, credential: str | None) -> tuple[int, dict[str, object]]:
    path = re.sub(r"\{scenario\}", "default", route.path)
    path = re.sub(r"\{[a-z_]+\}", "0" * 32, path)
    body = {"json": {}} if route.method == "POST" else {}
    reply = home.http(credential).request(route.method, path, **body)  # type: ignore[arg-type]
    return reply.status_code, reply.json()["error"]


def test_only_the_listed_routes_are_open_deciding_or_for_sessions() -> None:
    assert {name(route) for route in ROUTES if route.access is Access.OPEN} == OPEN
    assert {name(route) for route in ROUTES if route.access is Access.DECIDING} == DECIDING
    assert {name(route) for route in ROUTES if route.session} == SESSION


def test_no_two_routes_share_a_path_or_a_function() -> None:
    assert len({name(route) for route in ROUTES}) == len(ROUTES) == len({route.handler for route in ROUTES})


@pytest.mark.parametrize("route", KEYED, ids=name)
def test_a_keyed_route_refuses_whoever_brings_no_key(home: Home, route: Route) -> None:
    for credential in (None, "sk-something", "0" * 64):
        status, error = call(home, route, credential)
        assert (status, error["code"]) == (403, "forbidden")
        assert error["hint"]


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.session], ids=name)
def test_a_session_token_opens_no_route_but_its_own(home: Home, route: Route, session_token: str) -> None:
    status, error = call(home, route, session_token)
    assert (status, error["code"]) == (403, "forbidden")
    assert "session" in str(error["message"])


def test_an_unknown_route_is_404_in_the_shape_of_the_api(home: Home) -> None:
    assert home.nobody.get("/reef/nothing").json()["error"]["code"] == "not_found"
    assert home.nobody.get("/v1/nothing").json()["error"]["type"] == "not_found_error"
    reply = home.nobody.delete("/reef/status")
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
