"""Host, origin, content type, size, token: what is checked before a route sees a request."""

from __future__ import annotations

import socket
from collections.abc import Callable

import httpx
import pytest

from tests.http.running import Home, chat


def raw(home: Home, request: bytes) -> bytes:
    """Send bytes as they are and return the status line's reply."""
    port = int(home.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(request)
        return line.recv(65536)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1@x"])
def test_a_strange_host_is_refused_on_every_kind_of_route(home: Home, host: str) -> None:
    for path in ("/healthz", "/reef/status", "/v1/models", "/reef/records"):
        reply = home.http(home.key, host=host).get(path)
        assert reply.status_code == 403, path
    assert home.http(host=host).get("/reef/status").json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "[::1]:8900", "LOCALHOST"])
def test_the_names_of_loopback_are_answered_with_any_port(home: Home, host: str) -> None:
    assert home.http(host=host).get("/reef/status").status_code == 200


def test_a_request_without_a_host_or_with_two_is_refused(home: Home) -> None:
    assert b" 403 " in raw(home, b"GET /reef/status HTTP/1.0\r\n\r\n").splitlines()[0]
    twice = b"GET /reef/status HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nConnection: close\r\n\r\n"
    assert raw(home, twice).splitlines()[0].split()[1] in (b"400", b"403")


def test_the_persons_own_address_bar_is_no_other_site(home: Home) -> None:
    for site in ("none", "same-origin"):
        assert home.http(**{"sec-fetch-site": site}).get("/reef/status").status_code == 200


def test_a_body_that_is_not_json_is_400_in_the_shape_of_the_api(home: Home) -> None:
    headers = {"content-type": "application/json"}
    for path in ("/reef/report", "/reef/train", "/reef/scenarios"):
        for body in (b"", b"{", b"[1]", b'"x"', b"\xff\xfe"):
            reply = home.nobody.post(path, content=body, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid"), (path, body)
    reply = home.nobody.post("/v1/chat/completions", content=b"{", headers=headers)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_body_that_is_not_encoded_as_it_says_is_400_in_the_shape_of_the_api(home: Home) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    reply = home.nobody.post("/reef/report", content=b"no gzip at all", headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid")
    reply = home.nobody.post("/v1/chat/completions", content=b"no gzip at all", headers=headers)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert home.nobody.get("/reef/status").status_code == 200


def test_a_body_over_64_mib_is_413_before_it_is_read(home: Home) -> None:
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 67108865\r\nConnection: close\r\n\r\n"
    )
    assert b" 413 " in raw(home, head).splitlines()[0]


def test_a_chunked_body_over_64_mib_is_413(home: Home) -> None:
    def pieces() -> object:
        for _ in range(65):
            yield b" " * 1024 * 1024

    headers = {"content-type": "application/json"}
    try:
        reply = home.nobody.post("/reef/report", content=pieces(), headers=headers)  # type: ignore[arg-type]
    except httpx.WriteError:
        pytest.skip("the connection was closed before the answer could be read")
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")


def test_a_wrong_token_is_401_in_the_shape_of_the_api_and_healthz_needs_none(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_TOKEN": "the-right-token"}).start()
    assert home.nobody.get("/healthz").json() == {"ok": True}
    for credential in (None, "wr0ng-token"):
        client = home.http(credential)
        reply = client.get("/reef/status")
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized")
        assert "wr0ng-token" not in reply.text
        assert chat(client, "hi").json()["error"]["type"] == "authentication_error"
    for client in (home.http("the-right-token"), home.http(**{"x-api-key": "the-right-token"}), home.person):
        assert client.get("/reef/status").status_code == 200
        assert client.get("/reef/records").status_code == 200
        assert chat(client, "hi").status_code == 200
    decision = home.http("the-right-token").post("/reef/scenarios/default/rollback", json={"version": 1})
    assert decision.status_code == 403


def test_the_token_reaches_neither_the_upstream_nor_the_log_nor_the_database(
    new_home: Callable[..., Home], upstream: object
) -> None:
    secret = "tok-" + "z9" * 12
    home = new_home(environ={"REEF_TOKEN": secret}).start()
    assert chat(home.http(secret), "hello").status_code == 200
    home.http("wrong-" + secret).get("/reef/status")
    home.stop()
    for file in home.folder.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file
    assert secret not in upstream.log.read_text()  # type: ignore[attr-defined]
