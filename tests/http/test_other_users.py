"""Another user of the machine reaches the loopback address too, and is refused unless it brings the token."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable

import pytest

from tests.http.running import Home, chat

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


def as_nobody(home: Home, request: bytes, read: bool = True) -> bytes:
    """Send `request` from a process of another user and return what came back."""
    port = int(home.url.rpartition(":")[2])
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing may be imported from here on: the interpreter's own files may be closed to that user.
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            line = socket.socket()
            line.connect(("127.0.0.1", port))
            line.sendall(request)
            if read:
                os.write(into, line.recv(65536))
            line.close()
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out, "rb") as pipe:
        return pipe.read()


def get(path: str, credential: str = "") -> bytes:
    extra = f"Authorization: Bearer {credential}\r\n" if credential else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{extra}Connection: close\r\n\r\n".encode()


def post(path: str, body: object) -> bytes:
    text = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    return f"{head}\r\n\r\n{text}".encode()


def test_an_open_route_is_refused_to_another_user(home: Home) -> None:
    assert b" 403 " in as_nobody(home, get("/reef/status")).splitlines()[0]
    assert b" 403 " in as_nobody(home, post("/v1/chat/completions", {"messages": []})).splitlines()[0]
    assert b" 200 " in as_nobody(home, get("/healthz")).splitlines()[0]
    assert home.nobody.get("/reef/status").status_code == 200


def test_a_request_of_another_user_that_hangs_up_at_once_stores_nothing(home: Home) -> None:
    chat(home.nobody, "hi")
    before = home.nobody.get("/reef/status").json()["scenarios"]
    for _ in range(20):
        as_nobody(home, post("/reef/report", {"score": 1}), read=False)
    time.sleep(0.5)
    assert home.nobody.get("/reef/status").json()["scenarios"] == before


def test_the_token_opens_the_door_to_another_user(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_TOKEN": "shared-token"}).start()
    assert b" 200 " in as_nobody(home, get("/reef/status", "shared-token")).splitlines()[0]
    assert b" 401 " in as_nobody(home, get("/reef/status")).splitlines()[0]
