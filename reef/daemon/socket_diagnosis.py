"""One socket asked for by its two ends, over Linux's `NETLINK_SOCK_DIAG` (sock_diag(7)).

The tables under `/proc/net` hold every connection of the machine, and reading them takes longer the more there are.
"""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI")
_PORTS = struct.Struct(">HH")
_ANY_INTERFACE_AND_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_FOUND = struct.Struct("=BBxx")
_OWNER = struct.Struct("=II")
_OWNER_AT = 64
"""Where the user's id and the inode stand in `struct inet_diag_msg`."""
_LISTENING = 10
_LIMIT_S = 0.5


def ask_kernel(local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, int] | None:
    """The `(uid, inode)` of the TCP socket between `local` and `remote`, each (address, port).

    None when the kernel names no such connection, or cannot be asked.
    """
    ends = [plain_address(host) for host, _ in (local, remote)]
    family = socket.AF_INET if all(end.version == 4 for end in ends) else socket.AF_INET6
    ports = _PORTS.pack(local[1], remote[1])
    key = ports + b"".join(end.packed.ljust(16, b"\0") for end in ends)
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + key + _ANY_INTERFACE_AND_COOKIE
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as asked:
            asked.settimeout(_LIMIT_S)
            asked.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + body)
            reply = asked.recv(4096)
    except (OSError, AttributeError):
        return None
    return _owner(reply, ports)


def _owner(reply: bytes, ports: bytes) -> tuple[int, int] | None:
    if len(reply) < _HEADER.size + _OWNER_AT + _OWNER.size or _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    found = reply[_HEADER.size :]
    state = _FOUND.unpack_from(found)[1]
    # Where there is no such connection, the kernel may name a listener on the same port.
    if state == _LISTENING or found[_FOUND.size : _FOUND.size + len(ports)] != ports:
        return None
    uid, inode = _OWNER.unpack_from(found, _OWNER_AT)
    return uid, inode


def plain_address(host: str) -> IPv4Address | IPv6Address:
    """`host` as an address, IPv4 in IPv6 as the IPv4 that it is. Raises ValueError when it is none."""
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
