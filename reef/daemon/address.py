"""The address of the daemon: an explicit port is taken or refused, only a port that nobody set may move."""

from __future__ import annotations

import errno
import socket

from reef.daemon.lock import PortWish
from reef.daemon.processes import bind, port_holder
from reef.errors import ConfigError, Failed

_TRIES = 50


def take_address(host: str, wish: PortWish) -> socket.socket:
    """A listening socket at `host`. Raises Failed that names the port's holder, ConfigError for a foreign address."""
    address = "127.0.0.1" if host == "localhost" else host
    ports = range(wish.port, min(wish.port + _TRIES, 65536)) if wish.movable and wish.port else [wish.port]
    for port in ports:
        try:
            return bind(address, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            reason = (error.strerror or "it cannot be used").lower()
            raise ConfigError(f"{host}:{port} cannot be bound: {reason}", "reef config show") from None
        except OverflowError:
            raise ConfigError(f"{port} is not a port", "reef config show") from None
    if len(ports) > 1:
        raise Failed(f"the ports {ports[0]} to {ports[-1]} are all taken", "reef serve --reef.port 0")
    holder = port_holder(wish.port)
    raise Failed(f"port {wish.port} is taken{f' by {holder}' if holder else ''}", "reef serve --reef.port 0")
