"""A page in the person's browser starts nothing, stores nothing and reads nothing, whatever it sends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from reef.daemon.app import ROUTES
from tests.http.running import Home

ASK = {"text": "answer in one short sentence"}
BROWSER = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", BROWSER)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/reef/status", None),
        ("GET", "/v1/models", None),
        ("POST", "/reef/train", ASK),
        ("POST", "/reef/report", {"score": 1}),
        ("POST", "/v1/chat/completions", {"messages": []}),
        ("POST", "/reef/scenarios/default/rollback", {"version": 1}),
        ("OPTIONS", "/reef/report", None),
        ("GET", "/reef/no-such-route", None),
    ],
)
def test_a_page_of_another_site_starts_and_reads_nothing(
    home: Home, headers: dict[str, str], method: str, path: str, body: dict[str, object] | None
) -> None:
    before = home.nobody.get("/reef/status").json()
    reply = home.http(**headers).request(method, path, json=body)
    assert reply.status_code == 403
    assert not [name for name in reply.headers if name.startswith("access-control-")]
    after = home.nobody.get("/reef/status").json()
    assert [row["records"] for row in before["scenarios"]] == [row["records"] for row in after["scenarios"]]
    assert [row["reports"] for row in before["scenarios"]] == [row["reports"] for row in after["scenarios"]]


def test_a_page_may_only_learn_that_the_daemon_is_there(home: Home) -> None:
    reply = home.http(origin="https://evil.example").get("/healthz")
    assert (reply.status_code, reply.json()) == (200, {"ok": True})
    assert "access-control-allow-origin" not in reply.headers


BLIND = {
    "/reef/train": ASK,
    "/reef/scenarios/default/steps": {},
    "/reef/scenarios": {"name": "made-by-a-page"},
    "/reef/scenarios/default/rollback": {"version": 1},
    "/reef/report": {"score": 1, "agent_record_id": "0" * 32},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
}


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {}],
    ids=["origin", "site", "bare"],
)
@pytest.mark.parametrize("path", BLIND)
def test_a_blind_post_of_plain_text_starts_and_stores_nothing(home: Home, path: str, headers: dict[str, str]) -> None:
    before = counts(home)
    for token in ({}, {"authorization": f"Bearer {home.key}"}):
        sent = {"content-type": "text/plain", **headers, **token}
        reply = home.nobody.post(path, content=json.dumps(BLIND[path]), headers=sent)
        assert reply.status_code in (401, 403, 415), reply.text
    assert counts(home) == before
    assert home.person.get("/reef/asks").json()["asks"] == []


def test_no_route_lets_another_origin_read_it_not_even_its_errors(home: Home) -> None:
    page = home.http(origin="https://evil.example")
    for route in ROUTES:
        path = re.sub(r"\{[^}]+\}", "0" * 32, route.path)
        asked = {"access-control-request-method": route.method}
        replies = [page.options(path, headers=asked), page.request(route.method, path), page.get(path + "/no-such")]
        for reply in replies:
            assert not [name for name in reply.headers if name.startswith("access-control-")], path


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_a_body_that_is_not_json_by_its_type_is_refused_and_nothing_is_stored(home: Home, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    for path in ("/reef/report", "/reef/train", "/v1/chat/completions", "/reef/scenarios"):
        reply = home.nobody.post(path, content=b'{"score": 1, "text": "x", "name": "made-by-form"}', headers=headers)
        assert reply.status_code == 415, path
    assert "made-by-form" not in home.nobody.get("/reef/scenarios").text


FORM = {"image": ("a.png", b"\x89PNG\xff", "image/png")}
TAKES_A_FORM = ("/v1/images/edits", "/v1/images/variations")


@pytest.mark.parametrize("headers", BROWSER)
def test_a_form_of_another_site_is_refused_on_the_routes_that_take_forms_too(
    home: Home, headers: dict[str, str]
) -> None:
    for path in (*TAKES_A_FORM, "/s/made-by-form/v1/images/edits"):
        assert home.http(**headers).post(path, files=FORM).status_code == 403
    assert "made-by-form" not in home.nobody.get("/reef/scenarios").text


def test_no_other_route_takes_a_form(home: Home) -> None:
    assert sorted(route.path for route in ROUTES if route.form) == sorted(TAKES_A_FORM)
    for path in ("/v1/images/generations", "/v1/images", "/v1/embeddings", "/v1/chat/completions", "/reef/report"):
        assert home.nobody.post(path, files=FORM).status_code == 415
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        reply = home.nobody.post(TAKES_A_FORM[0], content=b"a=1", headers={"content-type": kind})
        assert reply.status_code == 415


def test_only_a_configured_origin_gets_cross_origin_headers(new_home: Callable[..., Home]) -> None:
    home = new_home(flags=[["reef.console-origins", '["https://console.example"]']]).start()
    reply = home.http(origin="https://console.example", **{"sec-fetch-site": "cross-site"}).get("/reef/status")
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "https://console.example"
    asked = home.http(origin="https://console.example").options("/reef/report")
    assert (asked.status_code, asked.headers["access-control-allow-methods"]) == (204, "GET, POST, PATCH, DELETE")
    assert home.http(origin="https://other.example").get("/reef/status").status_code == 403


def counts(home: Home) -> list[tuple[object, ...]]:
    """The scenarios, with how much is stored of each."""
    found = home.nobody.get("/reef/status").json()["scenarios"]
    return [(row["name"], row["records"], row["reports"]) for row in found]
