"""Facts about sockets and their processes on this machine, from Linux's kernel; None wherever there is none.

One use is safety: which user a loopback connection belongs to. The other is a good error: who holds a port.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from reef.daemon.socket_diagnosis import ask_kernel, plain_address

_LISTEN = "0A"


@dataclass(frozen=True)
class SocketOwner:
    """Who owns one end of a TCP connection."""

    uid: int
    inode: int
    """0 when no process holds the socket any more; the uid then says nothing."""


def _address(host: str, port: int) -> str:
    """`host:port` as `/proc/net/tcp` writes it: each 32-bit word in host byte order, hexadecimal."""
    packed = ip_address(host).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def connection_owner(peer: tuple[str, int], own: tuple[str, int]) -> SocketOwner | None:
    """The owner of the other end of a loopback connection.

    `peer` and `own` are (address, port) as this process sees them. None when there is no such socket (any more).
    """
    found = ask_kernel(peer, own)
    return SocketOwner(*found) if found is not None else listed_owner(peer, own)


def listed_owner(peer: tuple[str, int], own: tuple[str, int]) -> SocketOwner | None:
    """`connection_owner` by the tables of all connections, which a kernel has that answers no question about one."""
    ends = [peer, own]
    for table, mapped in (("tcp", False), ("tcp6", True), ("tcp6", False)):
        shown = [_address(_in_family(host, table == "tcp", mapped), port) for host, port in ends]
        wanted = f" {shown[0]} {shown[1]} "
        try:
            with Path(f"/proc/net/{table}").open(encoding="ascii") as rows:
                row = next((row for row in rows if wanted in row), None)
        except OSError:
            continue
        if row is not None:
            fields = row.split()
            return SocketOwner(int(fields[7]), int(fields[9]))
    return None


def _in_family(host: str, four: bool, mapped: bool) -> str:
    """`host` as a table of IPv4 or IPv6 sockets has it: an IPv4 peer may hold a socket of either kind."""
    plain = plain_address(host)
    if four:
        return str(plain)
    return f"::ffff:{plain}" if mapped and plain.version == 4 else str(plain)


def can_look_up() -> bool:
    """Whether this system tells the owner of a connection."""
    return Path("/proc/net/tcp").exists()


def port_holder(port: int) -> str | None:
    """`pid 123 (command line)` of the process that listens on `port`, as far as this user may see it."""
    inodes = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    if not inodes:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(entry.readlink()) in inodes for entry in (process / "fd").iterdir()):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                return f"pid {process.name} ({command[:120] or 'unnamed'})"
        except OSError:
            continue
    return "a process of another user"


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine's loopback, IPv4 in IPv6 included."""
    try:
        return plain_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError when the address is taken or not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setblocking(False)
        found.bind((host, port))
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found
