"""What is checked on every request before a route sees it: host, origin, owner of the connection, size, content type.

A page in the person's browser must not be able to start work here, and another user of this machine must not read the
person's records. The middleware also turns every error into the shape that the client expects.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web
from multidict import istr

from reef.config import Settings
from reef.daemon.access import NOBODY, Caller, Door
from reef.daemon.processes import can_look_up, connection_owner, is_loopback
from reef.daemon.replies import error_reply
from reef.daemon.table import ROUTE_OF
from reef.errors import (
    Failed,
    Forbidden,
    InvalidInput,
    NotFound,
    ReefError,
    TooLarge,
    Unauthorized,
    UnsupportedContent,
    UsageError,
)

log = logging.getLogger("reef.daemon")

MAX_BODY = 64 * 1024 * 1024
DOOR: web.AppKey[Door] = web.AppKey("door", Door)
CALLER: web.RequestKey[Caller] = web.RequestKey("caller", Caller)
PAGE_SCENARIO: web.RequestKey[str] = web.RequestKey("page_scenario", str)
"""The scenario whose page key the request brought."""
EXTRA_HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("extra_headers", dict)

_CLIENT_GONE = 499
_HOSTS_KEPT = 64
_JSON = "application/json"
_SITE = istr("sec-fetch-site")
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_EXPOSED = (
    "x-reef-agent-record-id, x-reef-release-id, x-reef-unrecorded, x-reef-estimate, x-reef-translated,"
    " x-reef-scenario-created"
)
_ALLOWED = {
    "access-control-allow-methods": "GET, POST, PATCH, DELETE",
    "access-control-allow-headers": "Authorization, Content-Type, x-reef-scenario",
    "access-control-max-age": "600",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class MethodNotAllowed(UsageError):
    """The path is there, but not for this method."""

    code = "method_not_allowed"
    http_status = 405


class Guard:
    """The checks of one daemon. `middleware` goes first into the app, `on_prepare` into its response signal."""

    def __init__(self, door: Door, settings: Settings) -> None:
        self._door = door
        self._hosts = _LOOPBACK_NAMES | {name.lower() for name in settings.reef.allowed_hosts}
        if settings.reef.host not in ("0.0.0.0", "::"):
            self._hosts |= {f"[{settings.reef.host}]" if ":" in settings.reef.host else settings.reef.host.lower()}
        self._origins = frozenset(settings.reef.console_origins)
        self._accepted: set[str] = set()
        """Headers as they came that were found good: nearly every call brings the same."""
        self._foreign: WeakKeyDictionary[asyncio.Transport, bool] = WeakKeyDictionary()

    @property
    def middleware(self) -> Any:
        """The aiohttp middleware."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await self._admit(request, handler)
            except ReefError as error:
                return error_reply(request.path, error)
            except web.HTTPException as error:
                if error.status < 400:
                    raise
                return error_reply(request.path, _own_error(request, error))
            except web.RequestPayloadError:
                refused = error_reply(request.path, InvalidInput("the body is not encoded as its headers say"))
                # Not read to its end: nobody can tell where the connection's next request begins.
                refused.force_close()
                return refused
            except ConnectionError:
                if not _has_left(request):
                    raise
                # Nobody reads this. Raised on, a hang-up would stand in the log as a failure of the route.
                return web.Response(status=_CLIENT_GONE)
            except Exception:
                log.exception("%s %s failed", request.method, _route_name(request))
                return error_reply(request.path, Failed("reef failed inside this route", "reef logs"))

        return guard

    async def on_prepare(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Add what every reply of this request carries."""
        if (more := request.get(EXTRA_HEADERS)) is not None:
            response.headers.update(more)
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and origin in self._origins:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED
            response.headers[hdrs.VARY] = "Origin"

    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._check_host(request)
        route = ROUTE_OF.get(request.match_info.handler)
        if route is not None and route.path == "/healthz":
            return await handler(request)
        self._check_browser(request)
        if request.method == hdrs.METH_OPTIONS and hdrs.ORIGIN in request.headers:
            return web.Response(status=204, headers=_ALLOWED)
        by_key = route is not None and route.page and self._brings_page_key(request)
        caller = NOBODY if by_key else self._door.caller(request.headers)
        self._check_owner(request, caller)
        if route is not None and not by_key:
            self._door.check(caller, route.access, route.session)
        _check_body(request, form=route is not None and route.form)
        request[CALLER] = caller
        return await handler(request)

    def _brings_page_key(self, request: web.Request) -> bool:
        """Whether the address has a page key, which then decides. Raises Unauthorized for a wrong one."""
        key, scenario = request.query.get("key"), request.query.get("scenario", "")
        if key is None:
            return False
        if not self._door.is_page_key(scenario, key):
            raise Unauthorized("this page key opens no page of this scenario", "reef page")
        request[PAGE_SCENARIO] = scenario
        return True

    def _check_host(self, request: web.Request) -> None:
        hosts = request.headers.getall(hdrs.HOST, [])
        if len(hosts) == 1 and hosts[0] in self._accepted:
            return
        name, _, port = hosts[0].lower().rpartition(":") if len(hosts) == 1 and _has_port(hosts[0]) else ("", "", "")
        name = name or (hosts[0].lower() if len(hosts) == 1 else "")
        if name not in self._hosts or (port and not port.isdigit()):
            raise Forbidden("this Host is not one that the daemon answers to", "use http://127.0.0.1 with the port")
        if len(self._accepted) < _HOSTS_KEPT:
            self._accepted.add(hosts[0])

    def _check_browser(self, request: web.Request) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None:
            if origin in self._origins:
                return
            raise Forbidden("a page of this origin may not call the daemon", "reef.console-origins in config.yaml")
        site = request.headers.get(_SITE)
        if site is not None and site not in ("none", "same-origin"):
            raise Forbidden("a page of another site may not call the daemon", "reef.console-origins in config.yaml")

    def _check_owner(self, request: web.Request, caller: Caller) -> None:
        """Refuse a loopback connection of another user, unless it brings a secret that only this user has."""
        if caller.kind in ("person", "token"):
            return
        connection = request.transport
        # Whoever hung up before this look cannot be known any more, and cannot read an answer either.
        foreign = True if connection is None else self._foreign.get(connection)
        if connection is not None and foreign is None:
            foreign = self._foreign[connection] = _is_foreign(connection)
        if foreign:
            raise Forbidden("this connection belongs to another user of the machine", "export REEF_TOKEN=…")


def _has_left(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


def _is_foreign(transport: asyncio.Transport) -> bool:
    peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not peer or not own or not is_loopback(peer[0]):
        return False
    if not can_look_up():
        return False
    owner = connection_owner((peer[0], peer[1]), (own[0], own[1]))
    # A socket that nobody holds any more is shown as root's, then not at all: whoever hangs up at once is not believed.
    return owner is None or owner.inode == 0 or owner.uid not in (0, os.getuid())


def _check_body(request: web.Request, form: bool) -> None:
    length = request.content_length
    if length is not None and length > MAX_BODY:
        raise TooLarge(f"the body has {length} bytes, the limit is {MAX_BODY}")
    if not request.body_exists or length == 0:
        return
    if request.headers.get(hdrs.CONTENT_TYPE) == _JSON:
        return
    kind = request.content_type
    if form and kind == "multipart/form-data":
        return
    if kind != _JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedContent("the body must be JSON by its content type", "-H 'Content-Type: application/json'")


def _own_error(request: web.Request, error: web.HTTPException) -> ReefError:
    if error.status == 404:
        return NotFound(f"there is no route {request.path[:200]}", "reef --help")
    if error.status == 405:
        return MethodNotAllowed(f"{request.path[:200]} does not take {request.method}", "reef --help")
    if error.status == 413:
        return TooLarge(f"the body is over the limit of {MAX_BODY} bytes")
    return UsageError(f"the request cannot be read: {error.reason}")


def _route_name(request: web.Request) -> str:
    route = ROUTE_OF.get(request.match_info.handler)
    return route.path if route else "an unknown route"
