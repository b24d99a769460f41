"""What a daemon asks of its process before it serves."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.config import load
from reef.daemon.lifecycle import serve
from reef.daemon.starting import Start
from reef.errors import Failed
from reef.paths import Paths


@pytest.fixture
def turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_no_thread_of_a_daemon_keeps_the_loop_waiting_for_pythons_five_milliseconds(
    tmp_path: Path, turns: None
) -> None:
    environ = {"HOME": str(tmp_path), "REEF_HOME": str(tmp_path / "reef")}
    paths = Paths.from_environ(environ)
    paths.make()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        resolved = load([("reef.port", str(taken.getsockname()[1]))], None, environ, paths)
        with pytest.raises(Failed, match="is taken"):
            serve(Start(resolved, False, True, None, ""), paths)
    assert sys.getswitchinterval() < 0.001
