"""Sockets and processes as this machine tells of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from reef.daemon.processes import SocketOwner, bind, connection_owner, is_loopback, listed_owner, port_holder
from reef.daemon.socket_diagnosis import ask_kernel
from reef.processes import is_alive, start_time

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_belongs_to_the_user_of_its_other_end_and_to_nobody_when_that_is_closed(host: str) -> None:
    try:
        listening = bind(host, 0)
    except OSError:
        pytest.skip(f"{host} is not there")
    listening.setblocking(True)
    port = listening.getsockname()[1]
    client = socket.create_connection((host, port))
    server, peer = listening.accept()
    with listening, server:
        own = (host, port)
        owner = connection_owner((peer[0], peer[1]), own)
        assert owner is not None and owner.uid == os.getuid() and owner.inode
        client.close()
        time.sleep(0.05)
        owner = connection_owner((peer[0], peer[1]), own)
        assert owner is None or owner.inode == 0


def test_a_connection_that_is_not_there_has_no_owner() -> None:
    assert connection_owner(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernel_says_of_one_connection_what_its_tables_say(family: socket.AddressFamily) -> None:
    with socket.socket(socket.AF_INET6) as listening, socket.socket(family) as client:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::", 0))
        listening.listen()
        port = listening.getsockname()[1]
        client.connect(("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", port))
        server, peer = listening.accept()
        with server:
            said = ask_kernel(peer[:2], server.getsockname()[:2])
            assert said == (os.getuid(), os.fstat(client.fileno()).st_ino)
            assert listed_owner(peer[:2], server.getsockname()[:2]) == SocketOwner(*said)


def test_a_listener_on_the_port_of_a_connection_that_is_gone_is_not_taken_for_it() -> None:
    with bind("127.0.0.1", 0) as listening:
        assert ask_kernel(("127.0.0.1", listening.getsockname()[1]), ("127.0.0.1", 9)) is None


def test_the_holder_of_a_port_is_named_by_pid_and_command() -> None:
    with bind("127.0.0.1", 0) as listening:
        holder = port_holder(listening.getsockname()[1])
        assert holder is not None and holder.startswith(f"pid {os.getpid()} (")
        port = listening.getsockname()[1]
    assert port_holder(port) is None


def test_a_taken_port_cannot_be_bound_again() -> None:
    with bind("127.0.0.1", 0) as listening:
        with pytest.raises(OSError):
            bind("127.0.0.1", listening.getsockname()[1])


def test_a_process_is_alive_until_it_has_ended_even_before_it_is_reaped() -> None:
    process = subprocess.Popen(["sleep", "30"])
    assert is_alive(process.pid)
    born = start_time(process.pid)
    assert born is not None and born >= (start_time(os.getpid()) or 0)
    process.kill()
    deadline = time.monotonic() + 5
    while is_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(process.pid)
    process.wait()
    assert start_time(process.pid) is None
    assert not is_alive(0) and not is_alive(-1)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_loopback_is_told_from_every_other_address(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
