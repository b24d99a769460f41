"""Which scenario a request means: its session's, the one in its path or header, else `default`."""

from __future__ import annotations

from aiohttp import hdrs, web

from reef.daemon.access import Caller
from reef.daemon.guard import CALLER
from reef.daemon.house import house_of
from reef.daemon.scenarios import DEFAULT, Scenario
from reef.errors import Forbidden, InvalidInput
from reef.ids import scenario_name

HEADER = "x-reef-scenario"


def caller_of(request: web.Request) -> Caller:
    """Who sent the request, as the guard found out."""
    return request[CALLER]


def asked_name(request: web.Request) -> str:
    """The scenario that the request names. Raises InvalidInput for what is no name, or for two that differ.

    A session's own scenario comes before any header: an agent acts on the scenario it was started for.
    """
    session = caller_of(request).session
    if session is not None:
        return session.scenario
    headers = request.headers.getall(HEADER, [])
    named = {scenario_name(name) for name in [*headers, *_from_path(request)]}
    if len(named) > 1:
        raise InvalidInput("the request names two scenarios", f"send one {HEADER} header")
    return named.pop() if named else DEFAULT


def asked_scenario(request: web.Request) -> Scenario:
    """The scenario that the request names. Raises NotFound: nothing but a model call makes one.

    Conflict for an archived one, unless it is only read.
    """
    return house_of(request).scenarios.known(asked_name(request), archived=_reads(request))


def scenario_in_path(request: web.Request, field: str = "scenario") -> Scenario:
    """The scenario in the route's own path. Raises NotFound, Forbidden for a session of another one.

    Conflict for an archived one, unless it is only read.
    """
    scenario = house_of(request).scenarios.known(request.match_info[field], archived=_reads(request))
    check_session(request, scenario.name)
    return scenario


def scenario_filter(request: web.Request) -> str | None:
    """The scenario that `?scenario=` narrows a list to, None without one. Raises NotFound."""
    name = request.query.get("scenario")
    return house_of(request).scenarios.known(name, archived=True).name if name else None


def check_session(request: web.Request, scenario: str) -> None:
    """Raises Forbidden when the caller is a session of another scenario."""
    session = caller_of(request).session
    if session is not None and session.scenario != scenario:
        raise Forbidden("this session belongs to another scenario", "run it in your own shell, outside the agent")


def _reads(request: web.Request) -> bool:
    return request.method == hdrs.METH_GET


def _from_path(request: web.Request) -> list[str]:
    found = request.match_info.get("in_path")
    return [] if found is None else [found]
