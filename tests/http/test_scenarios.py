"""Scenarios come to be visibly, once, with a base version, and a typo makes none by reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.running import Home, chat


def test_a_first_call_without_any_header_works_in_scenario_default(home: Home) -> None:
    reply = chat(home.nobody, "hello")
    assert reply.status_code == 200
    assert "x-reef-scenario-created" not in reply.headers
    record = home.person.get(f"/reef/records/{reply.headers['x-reef-agent-record-id']}").json()
    assert (record["scenario"], record["source"], record["version"]) == ("default", "program", 1)


def test_default_is_there_from_the_start_with_its_base_version(home: Home) -> None:
    rows = home.nobody.get("/reef/scenarios").json()["scenarios"]
    default = next(row for row in rows if row["name"] == "default")
    assert (default["version"], default["recipe"], default["adapter"]) == (1, "basic", "pi")
    releases = home.nobody.get("/reef/scenarios/default/releases").json()["releases"]
    assert [(row["version"], row["operation"], row["current"]) for row in releases] == [(1, "base", True)]
    assert releases[0]["release_id"] == default["release_id"]


def test_an_unknown_name_on_a_model_call_makes_the_scenario_and_says_so_once(home: Home) -> None:
    first = chat(home.nobody, "hello", **{"x-reef-scenario": "made-by-call"})
    assert (first.status_code, first.headers["x-reef-scenario-created"]) == (200, "1")
    again = chat(home.nobody, "hello", **{"x-reef-scenario": "made-by-call"})
    assert "x-reef-scenario-created" not in again.headers
    made = [row for row in home.nobody.get("/reef/scenarios").json()["scenarios"] if row["name"] == "made-by-call"]
    assert len(made) == 1
    assert first.headers["x-reef-release-id"] == made[0]["release_id"]


def test_reading_reporting_and_asking_never_make_a_scenario(home: Home) -> None:
    unknown = {"x-reef-scenario": "my-harnes"}
    chat(home.nobody, "hello", **{"x-reef-scenario": "my-harness"})
    client = home.nobody
    for reply in (
        client.get("/reef/harness", headers=unknown),
        client.get("/reef/harness/releases", headers=unknown),
        client.get("/reef/harness/install?adapter=pi", headers=unknown),
        client.post("/reef/report", json={"score": 1}, headers=unknown),
        client.post("/reef/train", json={"text": "x"}, headers=unknown),
        client.get("/reef/scenarios/my-harnes/releases"),
        client.get("/v1/models", headers=unknown),
    ):
        assert reply.status_code == 404, reply.request.url
        error = reply.json()["error"]
        assert error["hint"] == "did you mean 'my-harness'?"
    assert "my-harnes'" not in str(home.nobody.get("/reef/scenarios").json())


def test_creating_answers_201_with_the_release_and_then_200_with_the_same(home: Home) -> None:
    first = home.nobody.post("/reef/scenarios", json={"name": "made", "recipe": "harness-evolve"})
    assert first.status_code == 201
    body = first.json()
    assert body["scenario"] == "made"
    assert body["config"]["recipe"] == "reefine"
    assert len(body["release_id"]) == len(body["content_id"]) == 40
    again = home.nobody.post("/reef/scenarios", json={"name": "made"})
    assert (again.status_code, again.json()) == (200, body)


def test_a_scenario_that_is_there_is_not_silently_another_one(home: Home) -> None:
    home.nobody.post("/reef/scenarios", json={"name": "kept", "recipe": "basic"})
    reply = home.nobody.post("/reef/scenarios", json={"name": "kept", "recipe": "reefine"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "conflict")
    assert "basic" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "name", ["", "..", "a..b", "a/b", "-a", ".a", "a.lock", "a.", "HEAD", "head", "a b", "ä", "x" * 65, 5, None, ["a"]]
)
def test_what_is_no_name_is_400_with_a_suggestion_in_body_header_and_path(home: Home, name: object) -> None:
    reply = home.nobody.post("/reef/scenarios", json={"name": name})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid")
    assert reply.json()["error"]["hint"]
    if isinstance(name, str) and name:
        sent = name.encode("utf-8").decode("latin-1")
        headers = {"x-reef-scenario": sent.encode("latin-1")}
        call = home.nobody.post("/v1/chat/completions", json={"messages": []}, headers=headers)  # type: ignore[arg-type]
        assert call.status_code == 400, call.text


@pytest.mark.parametrize("path", ["/s/a%2fb/v1/models", "/s/a%252fb/v1/models", "/s/..%2f/v1/models"])
def test_a_slash_that_was_percent_encoded_is_refused_in_a_path(home: Home, path: str) -> None:
    assert home.nobody.get(path).status_code in (400, 404)


def test_a_scenario_in_the_path_is_the_same_as_in_the_header(home: Home) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    reply = home.nobody.post("/s/by-path/v1/chat/completions", json=body)
    assert (reply.status_code, reply.headers["x-reef-scenario-created"]) == (200, "1")
    assert home.nobody.get("/s/by-path/reef/harness/releases").json()["scenario"] == "by-path"
    both = home.nobody.post("/s/by-path/v1/chat/completions", json=body, headers={"x-reef-scenario": "other"})
    assert both.status_code == 400


def test_names_differ_by_more_than_case(home: Home) -> None:
    home.nobody.post("/reef/scenarios", json={"name": "Cased"})
    reply = home.nobody.post("/reef/scenarios", json={"name": "cased"})
    assert (reply.status_code, reply.json()["error"]["hint"]) == (400, "use 'Cased'")
    assert chat(home.nobody, "hi", **{"x-reef-scenario": "CASED"}).status_code == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [("recipe", "no-such"), ("adapter", "no-such"), ("engine", "no-such"), ("engine", {"url": "http://k@h/"})],
)
def test_a_creation_that_names_what_is_not_there_leaves_nothing(home: Home, field: str, value: object) -> None:
    reply = home.nobody.post("/reef/scenarios", json={"name": "half", field: value})
    assert reply.status_code in (400, 404)
    assert "half" not in [row["name"] for row in home.nobody.get("/reef/scenarios").json()["scenarios"]]


def test_with_creation_by_call_turned_off_an_unknown_name_is_404(new_home: Callable[..., Home]) -> None:
    home = new_home().start(["reef.allow-implicit-scenario-creation", "false"])
    assert chat(home.nobody, "hi").status_code == 200
    reply = chat(home.nobody, "hi", **{"x-reef-scenario": "new"})
    assert reply.status_code == 404
    assert reply.json()["error"]["hint"] == "reef scenarios create new"
    assert home.nobody.post("/reef/scenarios", json={"name": "new"}).status_code == 201
    assert chat(home.nobody, "hi", **{"x-reef-scenario": "new"}).status_code == 200


def test_a_scenario_may_name_its_own_engine(new_home: Callable[..., Home]) -> None:
    home = new_home()
    engine = {"url": home.upstream, "model": "fake-model"}
    home.upstream = "http://127.0.0.1:9"
    home.start()
    assert home.nobody.post("/reef/scenarios", json={"name": "own", "engine": engine}).status_code == 201
    assert chat(home.nobody, "hi").status_code == 502
    assert chat(home.nobody, "hi", **{"x-reef-scenario": "own"}).status_code == 200


KEYED = {"url": "http://127.0.0.1:9", "key_env": "AWS_SECRET_ACCESS_KEY"}


VENDORS = {"url": "http://127.0.0.1:9", "model": "gemini/gemini-x"}


@pytest.mark.parametrize("engine", [VENDORS, {"model": "bedrock/x"}])
def test_only_the_person_names_a_vendor_whose_keys_stand_in_the_environment(
    home: Home, session_token: str, engine: dict[str, str]
) -> None:
    body = {"name": "of-a-vendor", "engine": engine}
    for client in (home.nobody, home.http(session_token)):
        assert client.post("/reef/scenarios", json=body).status_code == 403
    refused = home.person.post("/reef/scenarios", json=body)
    assert (refused.status_code, refused.json()["error"]["hint"]) == (400, "./install.sh --with providers")
    assert body["name"] not in str(home.nobody.get("/reef/scenarios").json())


@pytest.mark.parametrize("engine", [KEYED, json.dumps(KEYED)], ids=["object", "text"])
def test_only_the_person_names_a_variable_whose_value_an_engine_is_sent(
    home: Home, session_token: str, engine: object
) -> None:
    body = {"name": f"keyed-{type(engine).__name__}", "engine": engine}
    for client in (home.nobody, home.http(session_token)):
        refused = client.post("/reef/scenarios", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert body["name"] not in str(home.nobody.get("/reef/scenarios").json())
    assert home.person.post("/reef/scenarios", json=body).status_code == 201


def test_a_recipe_is_a_name_and_never_a_path(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "recipe.toml").write_text('name = "mine"\ninputs = ["asks"]\n')
    (folder / "recipe.py").write_text("raise SystemExit\n")
    up = "../" * 30 + str(folder).lstrip("/")
    for recipe in (str(folder), up, "../recipes/basic", "basic/../basic", "."):
        refused = home.nobody.post("/reef/scenarios", json={"name": "from-a-path", "recipe": recipe})
        assert refused.status_code == 404, recipe
    assert "from-a-path" not in str(home.nobody.get("/reef/scenarios").json())
