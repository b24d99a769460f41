"""The throwaway room and its seal."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.sandbox import room as rooms
from reef.sandbox.room import Seal, probe, room

Need = Callable[[str], str]


def fake_bwrap(folder: Path, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)


def test_a_room_has_its_own_folders_and_is_gone_afterwards(sealed_room: Path) -> None:
    with room() as place:
        place.put({"skills/a/SKILL.md": b"x"})
        assert (place.agent / "skills" / "a" / "SKILL.md").read_bytes() == b"x"
        assert place.root.stat().st_mode & 0o077 == 0
        # Agents read the instruction files of every folder above the working directory.
        assert sealed_room not in place.work.parents
    assert not place.root.exists()


def test_a_room_is_gone_after_an_error_too() -> None:
    with pytest.raises(RuntimeError):
        with room() as place:
            raise RuntimeError
    assert not place.root.exists()


def test_what_killed_runs_left_behind_is_swept_and_what_runs_now_is_not() -> None:
    old = Path(tempfile.mkdtemp(prefix="reef-room-"))
    fresh = Path(tempfile.mkdtemp(prefix="reef-room-"))
    past = time.time() - 7 * 3600
    os.utime(old, (past, past))
    try:
        with room():
            assert not old.exists() and fresh.exists()
    finally:
        fresh.rmdir()


def test_nothing_of_the_persons_shell_but_where_programs_are_is_in_the_environment() -> None:
    environ = {"PATH": "/bin", "LANG": "C", "OPENAI_API_KEY": "k", "REEF_TOKEN": "t", "HTTP_PROXY": "p", "HOME": "/me"}
    with room() as place:
        found = place.environment(environ)
        assert found == {
            "PATH": "/bin",
            "LANG": "C",
            "HOME": str(place.home),
            "TMPDIR": str(place.root / "tmp"),
            "XDG_CONFIG_HOME": f"{place.home}/.config",
        }


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "setting up uid map: Permission denied"),
        ("echo 'bwrap: loopback: Failed RTM_NEWADDR' >&2; exit 1", "Failed RTM_NEWADDR"),
        ("exit 3", "status 3"),
    ],
)
def test_a_refused_seal_is_named_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    fake_bwrap(tmp_path / "first", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:/usr/bin:/bin")
    seal = probe()
    assert not seal.closed
    assert seal.reason.startswith("network open (") and said in seal.reason
    assert seal.wrap(tmp_path, ["x"]) == ["x"]


def test_a_machine_without_bubblewrap_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe() == Seal(None, "network open (bubblewrap is not installed)")


def test_the_probe_uses_the_flags_of_the_real_run_and_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bwrap(tmp_path / "first", f'echo "$@" >> {tmp_path}/calls')
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:/usr/bin:/bin")
    assert probe().closed and probe().closed
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    used = probe().wrap(Path("/r"), ["true"])[1:]
    flags = [part for part in used if part.startswith("--")]
    assert [part for part in calls[0].split() if part.startswith("--")] == flags
    assert "--unshare-net" in flags


PROBING = """
import os, socket, sys
from pathlib import Path
def tried(action):
    try:
        action()
        return "yes"
    except OSError as error:
        return "no"
server = socket.create_server(("127.0.0.1", 0))
print("loopback", tried(lambda: socket.create_connection(server.getsockname(), 2)))
print("outside", tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)))
print("internet", tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)))
print("inside", tried(lambda: Path(os.environ["HOME"], "x").write_text("x")))
print("elsewhere", tried(lambda: Path(sys.argv[2], "x").write_text("x")))
"""


def test_inside_the_seal_only_loopback_answers_and_only_the_root_is_writable(need_tool: Need, tmp_path: Path) -> None:
    need_tool("bwrap")
    seal = probe()
    if not seal.closed and os.environ.get("CI") != "true":
        pytest.skip(seal.reason)
    assert seal.closed, seal.reason
    with socket.create_server(("127.0.0.1", 0)) as server, room() as place:
        argv = [sys.executable, "-c", PROBING, str(server.getsockname()[1]), str(tmp_path)]
        done = subprocess.run(
            seal.wrap(place.root, argv), env=place.environment(), capture_output=True, text=True, timeout=60, check=True
        )
    assert done.stdout.split() == [
        "loopback",
        "yes",
        "outside",
        "no",
        "internet",
        "no",
        "inside",
        "yes",
        "elsewhere",
        "no",
    ]
    assert not (tmp_path / "x").exists()


def test_the_sealed_program_ends_with_the_one_that_started_it(need_tool: Need) -> None:
    need_tool("bwrap")
    seal = probe()
    if not seal.closed:
        pytest.skip(seal.reason)
    with room() as place:
        inner = seal.wrap(place.root, ["sh", "-c", "echo started; sleep 300"])
        starter = f"import subprocess, sys\nsubprocess.run({inner!r})"
        parent = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, env=place.environment())
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        parent.kill()
        parent.wait()
        # The pipe ends when the last process that holds it has ended.
        assert parent.stdout.read() == b""
        parent.stdout.close()


def test_the_room_does_not_remember_another_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    first = probe()
    fake_bwrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert probe() != first
    assert rooms.NETWORK_OPEN in first.reason
