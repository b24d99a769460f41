"""What answers calls: starts behind the daemon, says how it stands, and keeps its key to itself."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable

from tests.http.running import Home, chat, wait_for

CLIENT_KEY, HEADER_KEY, URL_KEY = "sk-CLIENT-123abc", "sk-UP-456def", "UP789ghi"


def test_without_a_network_the_embedded_model_fails_with_a_hint_and_everything_else_works(
    new_home: Callable[..., Home],
) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    home = new_home(environ=nowhere, flags=[["inference.backend", "embedded"], ["reef.port", "0"]])
    home.process = home.launch(base=False)
    home.wait_up(home.process)
    client = home.nobody
    engine = wait_for(lambda: (found := client.get("/reef/status").json()["engine"])["state"] == "failed" and found, 30)
    assert engine["name"] == "embedded"
    assert engine["detail"]
    reply = chat(client, "hi")
    assert reply.status_code == 503
    assert reply.json()["error"]["message"]
    assert client.get("/reef/harness").status_code == 200
    upstream = {"name": "other", "engine": {"url": home.upstream, "model": "fake-model"}}
    assert client.post("/reef/scenarios", json=upstream).status_code == 201
    assert chat(client, "hi", **{"x-reef-scenario": "other"}).status_code == 200


def test_an_upstream_that_is_down_is_502_in_the_dialects_shape_with_a_failed_record(
    new_home: Callable[..., Home],
) -> None:
    home = new_home()
    home.upstream = "http://127.0.0.1:9"
    home.start()
    reply = chat(home.nobody, "hello")
    assert reply.status_code == 502
    assert set(reply.json()["error"]) >= {"message", "type", "code"}
    record = home.person.get(f"/reef/records/{reply.headers['x-reef-agent-record-id']}").json()
    assert record["state"] == "failed"
    assert record["error"]
    assert home.nobody.get("/reef/status").json()["engine"]["state"] == "down"


def test_no_key_is_in_the_store_the_log_or_an_answer_whatever_goes_wrong(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_UPSTREAM_API_KEY": HEADER_KEY})
    good = home.upstream
    home.upstream = f"{good}/v1?key={URL_KEY}"
    home.start()
    client = home.http(CLIENT_KEY)
    told = [
        chat(client, "hello").text,
        client.post("/v1/chat/completions", json=["refused by reef"]).text,
        chat(client, "[[status 500]]").text,
        home.person.get("/reef/config").text,
        home.nobody.get("/reef/status").text,
    ]
    home.stop()
    home.upstream = f"http://user:{URL_KEY}@127.0.0.1:9/v1?key={URL_KEY}"
    home.start()
    told += [chat(home.http(CLIENT_KEY), "hello").text, home.nobody.get("/v1/models").text]
    home.stop()
    files = [file for file in (home.folder / "reef").rglob("*") if file.is_file()]
    for secret in (CLIENT_KEY, HEADER_KEY, URL_KEY):
        for form in (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")):
            assert all(form not in file.read_bytes() for file in files), secret
            assert all(form.decode() not in text for text in told), secret


def test_a_token_that_the_home_made_itself_is_in_a_file_of_its_own(new_home: Callable[..., Home]) -> None:
    home = new_home().start(["reef.token", "auto"])
    assert home.nobody.get("/reef/status").status_code == 401
    token = (home.paths.state / "token").read_text().strip()
    assert home.http(token).get("/reef/status").status_code == 200


def test_a_store_that_is_not_reefs_ends_the_start_and_is_left_as_it_is(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.paths.make()
    home.paths.database.write_bytes(b"this is somebody's own file" * 100)
    process = home.launch(foreground=True)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"error: " in err and b"hint: " in err and b"Traceback" not in err
    assert home.paths.database.read_bytes() == b"this is somebody's own file" * 100
    assert not home.paths.discovery.exists()


def test_the_status_does_not_wait_for_a_model_server_that_never_answers(new_home: Callable[..., Home]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        home = new_home()
        home.upstream = f"http://127.0.0.1:{silent.getsockname()[1]}"
        home.start()
        client = home.nobody
        started = time.monotonic()
        assert client.get("/reef/status").status_code == 200
        assert time.monotonic() - started < 4
