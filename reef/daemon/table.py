"""The route table: every path, who may call it, and the function behind it.

A route is keyed unless it is written here as open; a test walks the app and the table and compares. Routes that act on
a scenario also answer below `/s/<scenario>/…`, for clients that cannot set a header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from reef.daemon.access import Access

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Route:
    """One row of the table."""

    method: str
    path: str
    handler: Handler
    access: Access = Access.KEYED
    session: bool = False
    """Whether a session token opens it."""
    in_path: bool = False
    """Whether `/s/<scenario>` may stand in front."""
    page: bool = False
    """Whether a page key in its address opens it: a browser sends no header of its own."""
    form: bool = False
    """Whether its body may be a form with files. A page can send one unasked, so nothing but the checks of origin and
    site keeps pages away."""


ROUTE_OF: dict[Any, Route] = {}
"""Registered function to its row; filled by `register`."""


def register(app: web.Application, routes: Iterable[Route]) -> None:
    """Put every row into `app`. Two rows never share a function."""
    for route in routes:
        ROUTE_OF[route.handler] = route
        app.router.add_route(route.method, route.path, route.handler)
        if route.in_path:
            app.router.add_route(route.method, "/s/{in_path}" + route.path, route.handler)
