"""The socket of a session: one verb, one user, one line each way, whatever is sent."""

from __future__ import annotations

import json
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.errors import Refused
from reef.harness.confirming import Confirming, Json, Say, ask_person
from reef.paths import Paths

ASKED: list[tuple[int | None, str]] = []


def decide(version: int | None, screen: str, say: Say) -> Json:
    ASKED.append((version, screen))
    say({"asking": {"version": 3}})
    return {"declined": {"version": 3}}


@pytest.fixture
def paths() -> Iterator[Paths]:
    # The path of a socket has to be short, which a test's own folder is not everywhere.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Paths.from_environ({"REEF_HOME": folder, "HOME": folder})


@pytest.fixture
def confirming(paths: Paths) -> Iterator[Confirming]:
    ASKED.clear()
    made = Confirming(paths, decide)
    yield made
    made.close()
    assert not made.path.exists()


def send(place: Path, line: bytes) -> dict[str, dict[str, str]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(place))
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as lines:
            found: dict[str, dict[str, str]] = json.loads(lines.readline())
            return found


def test_its_file_is_the_users_alone_and_answers_line_by_line(confirming: Confirming) -> None:
    assert stat.S_IMODE(confirming.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(confirming.path.parent.stat().st_mode) == 0o700
    assert list(ask_person(str(confirming.path), 3)) == [{"asking": {"version": 3}}, {"declined": {"version": 3}}]
    assert list(ask_person(str(confirming.path), None, "alternate"))[-1] == {"declined": {"version": 3}}
    assert ASKED == [(3, "main"), (None, "alternate")]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"\xff\xfe\n",
        b"[3]\n",
        b'{"promote": 3}\n',
        b'{"install": 3, "yes": true}\n',
        b'{"install": "3; rm"}\n',
        b'{"install": true}\n',
        b'{"install": 0}\n',
        b'{"install": 3, "screen": "x"}\n',
        b'{"install": ' + b"1" * 9000,
        b"[" * 4000 + b"\n",
    ],
)
def test_what_is_no_question_is_refused_and_nobody_is_asked(confirming: Confirming, line: bytes) -> None:
    assert send(confirming.path, line)["error"]["code"] == "invalid"
    assert ASKED == []
    assert list(ask_person(str(confirming.path), 3))[-1] == {"declined": {"version": 3}}


def test_a_home_with_a_long_path_has_its_socket_in_a_private_folder(tmp_path: Path) -> None:
    deep = Paths.from_environ({"REEF_HOME": str(tmp_path / ("d" * 90)), "HOME": str(tmp_path)})
    made = Confirming(deep, decide)
    try:
        assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700
        assert list(ask_person(str(made.path), 3))[-1] == {"declined": {"version": 3}}
    finally:
        made.close()
    assert not made.path.parent.exists()


def test_the_socket_of_a_wrapper_that_was_killed_is_swept_and_a_living_one_is_not(
    confirming: Confirming, paths: Paths
) -> None:
    left = confirming.path.with_name("left.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(left))
    second = Confirming(paths, decide)
    second.close()
    assert not left.exists()
    assert confirming.path.exists()


def test_without_a_wrapper_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not answer"):
        list(ask_person(str(tmp_path / "no.sock"), 3))
