"""The room that the other tests rely on is really sealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.e2e.room import Room

CONNECT = "import socket; socket.create_connection(('{host}', {port}), timeout=3)"


def test_only_loopback_answers_in_the_room(room: Room, tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    outside = room.run(["python3", "-c", CONNECT.format(host="1.1.1.1", port=443)], env, tmp_path)
    assert "Network is unreachable" in outside.stderr
    listen = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
    inside = room.run(["python3", "-c", listen + "socket.create_connection(s.getsockname())"], env, tmp_path)
    assert (inside.returncode, inside.stderr) == (0, "")


@pytest.mark.network
def test_pi_and_the_model_are_there_before_the_room_is_sealed(home: Home) -> None:
    url, log = home.fake_upstream()
    assert url.startswith("http://127.0.0.1:")
    assert log.read_text() == ""
    assert list(home.data.glob("agents/pi/*/installed.json"))
    assert list(home.data.glob("models/*.gguf"))
