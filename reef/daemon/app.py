"""The aiohttp application of one house: the guard in front, the whole route table behind it."""

from __future__ import annotations

from aiohttp import web

from reef.daemon import (
    routes_asks,
    routes_carry,
    routes_commits,
    routes_forget,
    routes_harness,
    routes_import,
    routes_install,
    routes_model,
    routes_pages,
    routes_pins,
    routes_proposals,
    routes_records,
    routes_reports,
    routes_scenarios,
    routes_sessions,
    routes_status,
    routes_steps,
    routes_timeline,
    routes_usage,
    routes_versions,
    routes_why,
)
from reef.daemon.access import Door
from reef.daemon.guard import DOOR, MAX_BODY, Guard
from reef.daemon.house import HOUSE, House
from reef.daemon.secrets_on_disk import tokens
from reef.daemon.table import Route, register

ROUTES: list[Route] = [
    *routes_status.ROUTES,
    *routes_model.ROUTES,
    *routes_scenarios.ROUTES,
    *routes_versions.ROUTES,
    *routes_why.ROUTES,
    *routes_pins.ROUTES,
    *routes_carry.ROUTES,
    *routes_commits.ROUTES,
    *routes_reports.ROUTES,
    *routes_asks.ROUTES,
    *routes_proposals.ROUTES,
    *routes_pages.ROUTES,
    *routes_steps.ROUTES,
    *routes_records.ROUTES,
    *routes_timeline.ROUTES,
    *routes_import.ROUTES,
    *routes_sessions.ROUTES,
    *routes_usage.ROUTES,
    *routes_forget.ROUTES,
    *routes_harness.ROUTES,
    *routes_install.ROUTES,
]
"""Every route of the daemon."""


def build_app(house: House) -> web.Application:
    """The application that serves `house`."""
    door = Door(house.person_key, tokens(house.settings, house.paths), house.sessions.find)
    guard = Guard(door, house.settings)
    app = web.Application(middlewares=[guard.middleware], client_max_size=MAX_BODY)
    app[HOUSE] = house
    app[DOOR] = door
    app.on_response_prepare.append(guard.on_prepare)
    register(app, ROUTES)
    return app
