"""Which HTTP proxy a call takes, from the usual variables, whatever strange values these hold."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Route:
    """How to reach one host."""

    proxy: str | None
    """Address of the proxy, or None to go straight."""
    note: str = ""
    """What could not be used, for the person; empty when all is well."""


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine by name or by a 127.0.0.0/8 address."""
    return host in LOOPBACK or host.startswith("127.")


def route_to(url: str) -> Route:
    """The way to `url`. Loopback is never proxied; proxies that are not HTTP are not used and named in the note."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return Route(None)
    proxies = urllib.request.getproxies()
    chosen = proxies.get(parts.scheme) or proxies.get("all")
    if not chosen:
        return Route(None)
    if "://" not in chosen:
        chosen = f"http://{chosen}"
    scheme = chosen.partition("://")[0]
    if scheme not in ("http", "https"):
        return Route(None, f"a {scheme} proxy is set, which reef cannot use")
    return Route(chosen)
